package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// statusNodes is how many nodes the fleets of BenchmarkStatus have.
const statusNodes = 10_000

// BenchmarkStatus asks for the overview and the list of a fleet of 10,000 nodes, from the start of
// the process to its end. The server is in the process of the benchmark. Times are the least and the
// median, because other processes only add to them.
func BenchmarkStatus(b *testing.B) {
	muster := build(b)
	srv, store := kvtest.New(b)
	fillStatus(b, store)
	b.Setenv("NATS_URL", srv.URL())
	for _, args := range [][]string{{"status"}, {"nodes"}, {"query", "--by", "state"}} {
		b.Run(strings.Join(args, "-"), func(b *testing.B) {
			var wall, client, server []time.Duration
			for b.Loop() {
				cmd := exec.Command(muster, append([]string{"fleet"}, args...)...)
				cmd.Stderr = os.Stderr
				before, began := selfCPU(b), time.Now()
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				wall = append(wall, time.Since(began))
				server = append(server, selfCPU(b)-before)
				client = append(client, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			}
			for name, all := range map[string][]time.Duration{"wall": wall, "cpu": client, "server-cpu": server} {
				least, median := leastAndMedian(all)
				b.ReportMetric(float64(least.Microseconds())/1000, name+"-least-ms")
				b.ReportMetric(float64(median.Microseconds())/1000, name+"-median-ms")
			}
		})
	}
}

// active is an assignment as nodes run it.
type active struct {
	key      string
	revision uint64
	digest   string
}

// fillStatus stores assignments, and states and facts of nodes. Each node runs six manifests of groups, and
// one in a hundred an additional one. A tenth of the nodes fail.
func fillStatus(b *testing.B, store *kvtest.Store) {
	b.Helper()
	var shared []active
	put := func(key string) active {
		document := []byte("muster: {resources: []}")
		revision, err := store.Put(b.Context(), key, document)
		if err != nil {
			b.Fatal(err)
		}
		return active{key, revision, model.DigestOf(document)}
	}
	for _, name := range []string{"base", "sshd", "motd", "users", "app", "monitoring"} {
		shared = append(shared, put("group.web."+name))
	}
	facts, err := json.Marshal(map[string]any{"host": map[string]any{"info": map[string]any{"os": "linux"}, "text": strings.Repeat("0123456789", 340)}})
	if err != nil {
		b.Fatal(err)
	}
	nc, names := store.Conn, store.Names
	publish := func(subject string, data []byte) {
		if err := nc.PublishMsg(&nats.Msg{Subject: subject, Data: data}); err != nil {
			b.Fatal(err)
		}
	}
	for i := range statusNodes {
		name := fmt.Sprintf("web%05d", i)
		runs := slices.Clone(shared)
		if i%100 == 0 {
			runs = append(runs, put("node."+name+".own"))
		}
		state, err := json.Marshal(statusOf(name, i, runs))
		if err != nil {
			b.Fatal(err)
		}
		publish(names.NodeState(name), state)
		publish(names.NodeFacts(name), facts)
	}
	kvtest.Eventually(b, "all states are stored", func() (bool, string) {
		all, err := store.Nodes(b.Context())
		return err == nil && len(all) == statusNodes, fmt.Sprint(len(all), err)
	})
}

// statusOf is the state of a node.
func statusOf(name string, i int, runs []active) model.NodeState {
	now := time.Now().UTC()
	s := model.NodeState{
		Protocol: model.ProtocolNode, Node: name, Host: name + ".example.net", Version: "1.2.0", Started: now, At: now, Groups: []string{"web"}, SilentAfter: model.Duration(time.Hour),
		Labels: map[string]string{"rack": fmt.Sprintf("a%d", i%50), "role": "web"}, Watches: 72, Manifests: map[string]model.ManifestState{},
		Clock: model.ClockOffset{Offset: model.Offset(3 * time.Millisecond), Within: model.Duration(2 * time.Millisecond)},
	}
	for k, a := range runs {
		m := model.ManifestState{Revision: a.revision, Digest: a.digest, Outcome: model.OutcomeStable, At: now, Counts: model.Counts{Total: 12, Unique: 12, Stable: 12}}
		if i%10 == 0 && k == 0 {
			m.Outcome, m.Counts.Failed, m.Error = model.OutcomeFailed, 1, fmt.Sprintf("%s:4:11: exec#/bin/false: desired state not achieved: exit code %d", a.key, i%70)
		}
		s.Manifests[a.key] = m
	}

	return s
}

func leastAndMedian(all []time.Duration) (least, median time.Duration) {
	slices.Sort(all)

	return all[0], all[len(all)/2]
}

// selfCPU returns the time that this process took of processors.
func selfCPU(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}

	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
