package view_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

const (
	manyNodes   = 10_000
	manyReports = 50_000
)

// largeFleet returns nodes with six manifests each, and their assignments.
func largeFleet() (nodes []model.Node, entries []model.Entry) {
	var keys []string
	for _, name := range []string{"base", "sshd", "motd", "users", "app"} {
		keys = append(keys, "group.web."+name)
		entries = append(entries, entry("group.web."+name, 7))
	}
	now := time.Now()
	for i := range manyNodes {
		name := fmt.Sprintf("web%05d", i)
		own := "node." + name + ".own"
		entries = append(entries, entry(own, 7))
		outcome := model.OutcomeStable
		if i%10 == 0 {
			outcome = model.OutcomeFailed
		}
		n := node(name, now, outcome, append(keys, own)...)
		n.Labels = map[string]string{"rack": fmt.Sprintf("a%d", i%50), "role": "web"}
		for key, m := range n.Manifests {
			m.Digest = "sha256-" + strings.Repeat("0123456789abcdef", 4)
			m.Counts = model.Counts{Total: 12, Stable: 12}
			if outcome == model.OutcomeFailed {
				m.Error = fmt.Sprintf("%s:4:11: exec#/bin/false: desired state not achieved: exit code %d", key, i%70)
			}
			n.Manifests[key] = m
		}
		nodes = append(nodes, n)
	}

	return nodes, entries
}

// manyMessages returns runs of many nodes, each with a transaction.
func manyMessages() []model.StoredReports {
	out := make([]model.StoredReports, 0, manyReports)
	for seq := uint64(1); len(out) < manyReports; seq += 2 {
		name, id := fmt.Sprintf("web%05d", seq%manyNodes), ksuid.New().String()
		t := document(name, model.KindTransaction, model.ProtocolTransaction, model.OutcomeChanged, model.Transaction{
			Type: "file", Name: "/etc/motd", Provider: "posix", Changed: true, RequestedEnsure: "present", FinalEnsure: "present",
			Properties: []byte(`{"ensure":"present","content":"` + strings.Repeat("x", 300) + `","owner":"root","group":"root","mode":"0644"}`),
			Changes:    []model.Change{{Action: "store", Message: "changed the content", Property: "content", Diff: strings.Repeat("+a line\n", 40)}},
		})
		t.RunID, t.Manifest, t.Revision, t.Cause = id, "group.web.motd", 7, model.CauseManifest
		out = append(out, message(seq, 0, t), message(seq+1, 0, runOf(name, "group.web.motd", id, model.OutcomeChanged)))
	}

	return out
}

// cpu returns the processor time that was used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}

	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkAdd takes reports that are decoded from their envelopes already.
func BenchmarkAdd(b *testing.B) {
	all := manyMessages()
	before := cpu(b)
	for b.Loop() {
		f := view.New(view.Options{})
		for _, m := range all {
			f.Add(m)
		}
	}
	b.ReportMetric(float64(manyReports)*float64(b.N)/b.Elapsed().Seconds(), "reports/s")
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N)/manyReports, "cpu-us/report")
}

// BenchmarkOverview makes it anew after each change of a node.
func BenchmarkOverview(b *testing.B) {
	nodes, entries := largeFleet()
	f := view.New(view.Options{})
	f.SetAssignments(entries)
	f.SetNodes(time.Now(), nodes)
	before := cpu(b)
	for b.Loop() {
		f.SetNode(nodes[0])
		f.ForgetOverview()
		f.Overview()
	}
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// BenchmarkNodes makes a page of nodes by a target.
func BenchmarkNodes(b *testing.B) {
	nodes, entries := largeFleet()
	f := view.New(view.Options{})
	f.SetAssignments(entries)
	f.SetNodes(time.Now(), nodes)
	for name, q := range map[string]view.NodeQuery{"all": {}, "search": {Search: "a17"}, "target": {On: `group("web") && labels.rack == "a3" && state != "unreachable"`, Sort: "state"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := f.Nodes(q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMemory reports the live heap of a full view.
func BenchmarkMemory(b *testing.B) {
	live := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)

		return float64(m.HeapAlloc) / 1e6
	}
	for b.Loop() {
		before := live()
		f := view.New(view.Options{})
		nodes, entries := largeFleet()
		f.SetAssignments(entries)
		f.SetNodes(time.Now(), nodes)
		nodes, entries = nil, nil
		afterNodes := live()
		for again := range uint64(2) {
			for _, m := range manyMessages() {
				m.Sequence += again * manyReports
				f.Add(m)
			}
		}
		b.ReportMetric(afterNodes-before, "MB-nodes")
		b.ReportMetric(live()-before, "MB")
		runtime.KeepAlive(f)
	}
}
