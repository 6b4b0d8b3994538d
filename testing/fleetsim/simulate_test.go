package fleetsim_test

import (
	"context"
	"fmt"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/agent/simulate"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/fleetsim"
	"github.com/musterfleet/muster/testing/kvtest"
)

// 5,000 simulated nodes: how long until a push runs on all and is reported by all, and until
// all have answered a ping; with many nodes on a connection, and with one each.
func BenchmarkSimulated(b *testing.B) {
	for name, each := range map[string]int{"shared": fleetcmd.NodesPerConnection, "own": 1} {
		b.Run("5000/"+name, func(b *testing.B) {
			for b.Loop() {
				simulated(b, 5000, each)
			}
		})
	}
}

// rounds is how many pushes and pings are measured.
const rounds = 5

// ownCPU returns the time that this process has computed so far, which plays the nodes and
// asks them.
func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}

	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// simulated is one round of the benchmark above, which reports its parts.
func simulated(b *testing.B, count, perConnection int) {
	// As muster fleet simulate has it.
	defer debug.SetGCPercent(debug.SetGCPercent(fleetcmd.SimulateGCPercent))
	u := fleetsim.ByConfig(b, nil)
	s := admin(b, u)
	began := time.Now()
	f := fleetsim.Simulate(b, u.Options(""), fleetcmd.SimulateOptions{
		Plan: simulate.Plan{Nodes: count, Scenario: "stable", RunTime: 50 * time.Millisecond}, PerConnection: perConnection,
	})
	b.ReportMetric(time.Since(began).Seconds(), "s-join")
	var reported, known, answered []time.Duration
	before, beforeServer := ownCPU(b), u.Server.CPU(b)
	for i := range rounds {
		r, k := push(b, s, count, i)
		reported, known = append(reported, r), append(known, k)
	}
	b.ReportMetric((ownCPU(b)-before).Seconds()/rounds, "s-cpu-nodes/push")
	b.ReportMetric((u.Server.CPU(b)-beforeServer).Seconds()/rounds, "s-cpu-server/push")
	for range rounds {
		answered = append(answered, ping(b, s, len(f.Names())))
	}
	b.ReportMetric(median(reported).Seconds(), "s-reported")
	b.ReportMetric(median(known).Seconds(), "s-states")
	b.ReportMetric(median(answered).Seconds(), "s-ping")
	b.ReportMetric(u.Server.CPU(b).Seconds(), "s-server")
	b.ReportMetric(float64(u.Server.Memory(b))/1e6, "MB-server")
}

// push assigns a manifest of one file to all, and returns how long it took until the stream
// had the reports of all runs, and until the states of all nodes had them.
func push(b *testing.B, s *kvtest.Store, count, round int) (reported, known time.Duration) {
	b.Helper()
	came := make(chan struct{}, count)
	names := s.Names
	sub, err := s.Conn.Subscribe(names.Report("*", model.KindRun, string(model.OutcomeChanged)), func(*nats.Msg) { came <- struct{}{} })
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	_ = sub.SetPendingLimits(-1, -1)
	manifest := fmt.Sprintf("muster:\n  resources:\n    - file:\n        - /etc/motd: {content: \"round %d\\n\", owner: root, group: root, mode: '0644'}\n", round)
	began := time.Now()
	revision, err := s.Put(b.Context(), "group.sim.site", []byte(manifest))
	if err != nil {
		b.Fatal(err)
	}
	for range count {
		<-came
	}
	// Messages stored from now on follow them.
	if err := kvtest.Publish(b.Context(), s, kvtest.Outgoing("last", model.KindNode, "started", uint64(round+1))); err != nil {
		b.Fatal(err)
	}
	reported = time.Since(began)
	for {
		nodes, err := s.Nodes(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		left := count
		for _, n := range nodes {
			if m := n.Manifests["group.sim.site"]; m.Revision == revision && m.Outcome != "" {
				left--
			}
		}
		if left == 0 {
			return reported, time.Since(began)
		}
	}
}

// ping returns how long it took until all nodes had answered.
func ping(b *testing.B, s *kvtest.Store, count int) time.Duration {
	b.Helper()
	ctx, stop := context.WithTimeout(b.Context(), time.Minute)
	defer stop()
	began, seen := time.Now(), map[string]bool{}
	for reply, err := range kvtest.Ask(ctx, requests.New(s.Store), s.Names.Request(kvstore.VerbPing, model.GroupFamily(simulate.GroupSim)), nil) {
		if err != nil {
			b.Fatal(err)
		}
		if seen[reply.Node] = true; len(seen) == count {
			return time.Since(began)
		}
	}
	b.Fatalf("%d of %d answered", len(seen), count)

	return 0
}

// BenchmarkRate has 500 nodes that make 20,000 reports a second, the most that a reader of the stream must
// take. It measures how many reports the stream stores.
func BenchmarkRate(b *testing.B) {
	const rate, seconds = 20_000, 5
	defer debug.SetGCPercent(debug.SetGCPercent(fleetcmd.SimulateGCPercent))
	for b.Loop() {
		u := fleetsim.ByConfig(b, nil)
		s := admin(b, u)
		if _, err := s.Put(b.Context(), "group.sim.site", []byte("muster:\n  resources:\n    - file:\n        - /etc/motd: {content: hello, owner: root, group: root, mode: '0644'}\n")); err != nil {
			b.Fatal(err)
		}
		fleetsim.Simulate(b, u.Options(""), fleetcmd.SimulateOptions{Plan: simulate.Plan{Nodes: 500, Scenario: "stable"}, Rate: rate})
		stream, err := s.JetStream().Stream(b.Context(), s.Names.Reports)
		if err != nil {
			b.Fatal(err)
		}
		began, before, beforeServer := time.Now(), ownCPU(b), u.Server.CPU(b)
		stored := func() uint64 {
			info, err := stream.Info(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			return info.State.LastSeq
		}
		firstStored := stored()
		ticks := time.NewTicker(100 * time.Millisecond)
		for time.Since(began) < seconds*time.Second {
			<-ticks.C
		}
		ticks.Stop()
		elapsed := time.Since(began).Seconds()
		b.ReportMetric(float64(stored()-firstStored)/elapsed, "stored/s")
		b.ReportMetric((ownCPU(b)-before).Seconds()/elapsed, "cores-nodes")
		b.ReportMetric((u.Server.CPU(b)-beforeServer).Seconds()/elapsed, "cores-server")
	}
}
