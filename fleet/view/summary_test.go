package view_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// node makes a node of group web.
func summaryNode(name string, change func(*model.Node)) model.Node {
	n := model.Node{NodeState: model.NodeState{Node: name, Version: "1.2.0", Groups: []string{"web"}, Manifests: map[string]model.ManifestState{}}, Heard: now}
	if change != nil {
		change(&n)
	}

	return n
}

func summaryEntry(key string, revision uint64, age time.Duration) model.Entry {
	return model.Entry{Key: key, Revision: revision, Time: now.Add(-age)}
}

func failed(key, text string) func(*model.Node) {
	return func(n *model.Node) {
		n.Manifests[key] = model.ManifestState{Revision: 7, Outcome: model.OutcomeFailed, Error: text, At: now.Add(-time.Minute), Counts: model.Counts{Total: 1, Failed: 1}}
	}
}

// TestSummary: every node counts once among the states, and once for each name that is assigned
// to it.
func TestSummary(t *testing.T) {
	t.Parallel()
	const motd, own = "group.web.motd", "node.c.own"
	runs := func(outcome model.Outcome) func(*model.Node) {
		return func(n *model.Node) {
			n.Manifests[motd] = model.ManifestState{Revision: 7, Outcome: outcome}
		}
	}
	nodes := []model.Node{
		summaryNode("a", runs(model.OutcomeStable)),
		summaryNode("b", runs(model.OutcomeNoop)),
		summaryNode("c", func(n *model.Node) {
			failed(motd, motd+":4:11: exec#/bin/false: exit code 1\nmore")(n)
			failed(own, own+":4:11: exec#/bin/false: exit code 1")(n)
		}),
		summaryNode("d", func(n *model.Node) { failed(motd, motd+":4:11: exec#/bin/false: exit code 1")(n) }),
		summaryNode("e", func(n *model.Node) {
			n.Manifests[motd] = model.ManifestState{Revision: 6, Seen: 7, Outcome: model.OutcomeStable, Late: "refused: not signed"}
		}),
		summaryNode("f", func(n *model.Node) { n.Manifests[motd] = model.ManifestState{Revision: 6} }),
		summaryNode("g", func(n *model.Node) {
			n.Silent, n.Outbox, n.Message = true, 9, "of then"
			runs(model.OutcomeStable)(n)
		}),
		summaryNode("h", func(n *model.Node) { n.Event = model.NodeStopped }),
		summaryNode("i", func(n *model.Node) { n.Unreadable, n.Groups = "garbage", nil }),
	}
	got := view.SummaryOf(nodes, []model.Entry{summaryEntry(motd, 7, time.Hour), summaryEntry(own, 7, time.Hour), summaryEntry("node.z.own", 8, time.Hour)}, "1.2.0", now)
	if got.Total != 9 || !got.At.Equal(now) {
		t.Errorf("%d nodes at %s", got.Total, got.At)
	}
	var states []string
	sum := 0
	for _, s := range got.States {
		states = append(states, fmt.Sprint(s.Nodes, " ", s.State, " ", s.First))
		sum += s.Nodes
	}
	if want := "2 failed [c d]; 1 rejected [e]; 1 pending [f]; 1 unreachable [g]; 1 unreadable [i]; 1 stopped [h]; 2 ok [a b]"; strings.Join(states, "; ") != want || sum != got.Total {
		t.Errorf("states: %s", strings.Join(states, "; "))
	}
	if len(got.Manifests) != 2 || got.Manifests[0].Name != "motd" || got.Manifests[1].Name != "own" {
		t.Fatalf("manifests: %+v", got.Manifests)
	}
	if m := got.Manifests[0]; m.Tally != (fleet.Tally{All: 8, Targets: 8, UpToDate: 2, Failed: 2, Rejected: 1, Unreachable: 2, Pending: 1}) || m.Noop != 1 {
		t.Errorf("motd: %+v", m)
	}
	if p := got.Manifests[0].Oldest; p == nil || *p != (view.Pending{Node: "f", Key: motd, Reason: "still at revision 6", Since: now.Add(-time.Hour)}) {
		t.Errorf("oldest pending: %+v", p)
	}
	if m := got.Manifests[1]; m.Tally != (fleet.Tally{All: 2, Targets: 2, Failed: 1, Unreachable: 1}) || m.Oldest != nil {
		t.Errorf("own: %+v", m)
	}
	var failing []string
	for _, f := range got.Failing {
		failing = append(failing, fmt.Sprint(f.Manifest, " ", f.Status, " ", f.Error, " ", f.First))
	}
	if want := "motd failed motd:4:11: exec#/bin/false: exit code 1 [c d]; motd rejected not signed [e]; own failed own:4:11: exec#/bin/false: exit code 1 [c]"; strings.Join(failing, "; ") != want {
		t.Errorf("failing: %s", strings.Join(failing, "; "))
	}
	if len(got.Outboxes)+len(got.Messages) != 0 {
		t.Errorf("what a node had before it went away counts: %+v %+v", got.Outboxes, got.Messages)
	}
	if len(got.Incomplete) != 2 || !strings.Contains(got.Incomplete[0], "1 of 9 nodes cannot be read") || !strings.Contains(got.Incomplete[1], "never seen: 1;") {
		t.Errorf("incomplete: %q", got.Incomplete)
	}
}

// TestWhatIsWrongWithNodes: clocks, outboxes and versions, the worst first.
func TestWhatIsWrongWithNodes(t *testing.T) {
	t.Parallel()
	flapping := func(writer string) model.FlappingState {
		return model.FlappingState{Manifest: "group.web.motd", Resource: model.Ref{Type: "file", Name: "/etc/motd"}, Writer: writer}
	}
	nodes := []model.Node{
		summaryNode("a", func(n *model.Node) {
			n.Outbox, n.Version, n.Flapping = 1, "1.10.0", []model.FlappingState{flapping("cron")}
		}),
		summaryNode("b", func(n *model.Node) {
			n.Outbox, n.Version = 20, "v1.9.0"
			n.Message = "group.db: not permitted" + strings.Repeat("x", 1000)
			n.Flapping = []model.FlappingState{flapping(""), flapping("")}
			n.Clock = model.ClockOffset{Offset: model.Offset(-time.Hour), Within: model.Duration(time.Millisecond)}
		}),
		summaryNode("c", func(n *model.Node) {
			n.Version = "devel-abc"
			n.Clock = model.ClockOffset{Offset: model.Offset(2 * time.Hour), Within: model.Duration(time.Millisecond)}
		}),
		summaryNode("d", func(n *model.Node) { n.Version = "99.0.0" }),
	}
	got := view.SummaryOf(nodes, nil, "v1.10.0", now)
	if len(got.Messages) != 1 || got.Messages[0].Node != "b" || got.Messages[0].Message != "group.db: not permitted"+strings.Repeat("x", 277)+"…" {
		t.Errorf("messages: %v", got.Messages)
	}
	if fmt.Sprint(got.Outboxes) != "[{b 20} {a 1}]" {
		t.Errorf("outboxes: %v", got.Outboxes)
	}
	if len(got.Clocks) != 2 || got.Clocks[0].Node != "c" || got.Clocks[1].Node != "b" {
		t.Errorf("clocks: %+v", got.Clocks)
	}
	var versions []string
	for _, v := range got.Versions {
		versions = append(versions, fmt.Sprint(v.Version, " ", v.Older, v.Current, " ", v.First))
	}
	if want := "99.0.0 false false [d]; 1.10.0 false true [a]; v1.9.0 true false [b]; devel-abc false false [c]"; strings.Join(versions, "; ") != want {
		t.Errorf("versions: %s", strings.Join(versions, "; "))
	}
	if len(got.Flapping) != 1 || got.Flapping[0].Nodes != 2 || got.Flapping[0].Resource != "file#/etc/motd" || got.Flapping[0].Manifest != "motd" || got.Flapping[0].By != "probably written by cron" {
		t.Errorf("flapping: %+v", got.Flapping)
	}
	if len(got.Incomplete) != 0 || len(got.Manifests) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestOneNodeDoesNotDecideSinceWhen: neither by a clock that is wrong nor by a lie.
func TestOneNodeDoesNotDecideSinceWhen(t *testing.T) {
	t.Parallel()
	const motd = "group.web.motd"
	for name, c := range map[string]struct {
		claims []time.Duration
		want   time.Duration
	}{
		"alone":                {[]time.Duration{5 * time.Hour}, 5 * time.Hour},
		"alone in the future":  {[]time.Duration{-5 * time.Hour}, 0},
		"long ago":             {[]time.Duration{time.Hour, 2 * time.Hour, 10_000 * time.Hour}, 2 * time.Hour},
		"long ago, one of two": {[]time.Duration{10_000 * time.Hour, time.Hour}, time.Hour},
		"in the future":        {[]time.Duration{-10_000 * time.Hour, time.Hour, 2 * time.Hour}, time.Hour},
	} {
		var nodes []model.Node
		for i, ago := range c.claims {
			nodes = append(nodes, summaryNode(fmt.Sprint("a", i), func(n *model.Node) {
				failed(motd, "no space left")(n)
				m := n.Manifests[motd]
				m.FailedSince = now.Add(-ago)
				n.Manifests[motd] = m
			}))
		}
		got := view.SummaryOf(nodes, []model.Entry{summaryEntry(motd, 7, 24*time.Hour)}, "1.2.0", now).Failing
		if len(got) != 1 || got[0].Nodes != len(c.claims) || !got[0].Since.Equal(now.Add(-c.want)) {
			t.Errorf("%s: %+v, want %s ago", name, got, c.want)
		}
	}
}

// TestSinceWhen: unreachable counts from the node with the longest absence; failed and rejected from the time
// of most nodes.
func TestSinceWhen(t *testing.T) {
	t.Parallel()
	const motd = "group.web.motd"
	fails := func(since time.Duration) func(*model.Node) {
		return func(n *model.Node) {
			failed(motd, "no space left")(n)
			m := n.Manifests[motd]
			if since > 0 {
				m.FailedSince = now.Add(-since)
			}
			n.Manifests[motd] = m
		}
	}
	var nodes []model.Node
	for i := range 40 { // on all cores
		nodes = append(nodes, summaryNode(fmt.Sprintf("a%02d", i), fails(time.Duration(i%20)*time.Hour)))
	}
	nodes = append(nodes,
		summaryNode("b", func(n *model.Node) {
			n.Manifests[motd] = model.ManifestState{Revision: 6, Seen: 7, Late: "refused: not signed"}
		}),
		summaryNode("c", func(n *model.Node) { n.Silent, n.Heard = true, now.Add(-3*time.Hour) }),
		summaryNode("d", func(n *model.Node) { n.Silent, n.Heard = true, now.Add(-2*time.Hour) }),
	)
	got := view.SummaryOf(nodes, []model.Entry{summaryEntry(motd, 7, 24*time.Hour)}, "1.2.0", now)
	for _, f := range got.Failing {
		want := map[fleet.Status]time.Duration{fleet.StatusFailed: 10 * time.Hour, fleet.StatusRejected: 24 * time.Hour}[f.Status]
		if !f.Since.Equal(now.Add(-want)) {
			t.Errorf("%s since %s, want %s ago", f.Status, f.Since, want)
		}
	}
	if len(got.Failing) != 2 {
		t.Errorf("%+v", got.Failing)
	}
	for _, s := range got.States {
		if away := s.State == fleet.StatusUnreachable; away != s.Since.Equal(now.Add(-3*time.Hour)) || away == s.Since.IsZero() {
			t.Errorf("%s since %s", s.State, s.Since)
		}
	}
	n := view.NewNode(nodes[3], fleet.NewAssigned(nil).Statuses(nodes[3]), fleet.NewAssigned(nil))
	if s := n.Statuses; len(s) != 1 || !s[0].Began().IsZero() {
		t.Errorf("what is not assigned: %+v", s)
	}
	entries := []model.Entry{summaryEntry(motd, 7, 24*time.Hour)}
	for i, want := range map[int]time.Duration{3: 3 * time.Hour, 40: 24 * time.Hour} {
		n := view.NewNode(nodes[i], fleet.NewAssigned(entries).Statuses(nodes[i]), fleet.NewAssigned(entries))
		if s := n.Statuses; len(s) != 1 || !s[0].Began().Equal(now.Add(-want)) {
			t.Errorf("%s: %+v", n.Node.Node, s)
		}
	}
}

// TestOneNodeDoesNotFillTheOverview: a node chooses its errors, versions and what flaps.
func TestOneNodeDoesNotFillTheOverview(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 100_000)
	n := summaryNode("a", func(n *model.Node) {
		n.Version = long
		failed("group.web.motd", long)(n)
		for i := range 1000 {
			n.Flapping = append(n.Flapping, model.FlappingState{Manifest: long, Resource: model.Ref{Type: "file", Name: fmt.Sprint(i, long)}, Writer: long})
		}
	})
	got := view.SummaryOf([]model.Node{n}, []model.Entry{summaryEntry("group.web.motd", 7, 0)}, "1", now)
	if size := len(fmt.Sprint(got)); size > 40_000 || len(got.Flapping) != 20 || len(got.Failing) != 1 {
		t.Errorf("%d bytes, %d flapping", size, len(got.Flapping))
	}
}

// TestPaused: pending because of a pause is separate from late. A paused node that fails counts as failed.
func TestPaused(t *testing.T) {
	t.Parallel()
	const motd = "group.web.motd"
	pause := func(n *model.Node) { n.Paused = &model.Paused{By: "ann"} }
	is := func(m model.ManifestState, be ...func(*model.Node)) func(*model.Node) {
		return func(n *model.Node) {
			n.Manifests[motd] = m
			for _, b := range be {
				b(n)
			}
		}
	}
	pending := model.ManifestState{Revision: 6, Outcome: model.OutcomeStable}
	fails := model.ManifestState{Revision: 7, Outcome: model.OutcomeFailed, Error: "x"}
	all := []model.Node{
		summaryNode("a", is(pending, pause)), summaryNode("b", is(fails, pause)), summaryNode("c", is(model.ManifestState{Revision: 7, Outcome: model.OutcomeStable}, pause)),
		summaryNode("d", is(fails)), summaryNode("e", is(pending)),
	}
	entries := []model.Entry{summaryEntry(motd, 7, time.Hour)}
	list := fleet.NewAssigned(entries)
	of := func(nodes []model.Node) view.Summary {
		got := view.SummaryOf(nodes, entries, "", now)
		if from := view.KnownSummary(nodes, list, "", now); !reflect.DeepEqual(from.Manifests, got.Manifests) || !reflect.DeepEqual(from.States, got.States) {
			t.Errorf("%+v %+v, from nodes that are compared %+v %+v", got.States, got.Manifests, from.States, from.Manifests)
		}

		return got
	}
	got := of(all)
	if p := got.Manifests[0].Oldest; p == nil || p.Node != "e" || p.Paused || got.Manifests[0].Pending != 2 {
		t.Errorf("with one that is late: %+v", got.Manifests[0])
	}
	want := map[fleet.Status]int{fleet.StatusPending: 1, fleet.StatusFailed: 1, fleet.StatusOK: 1}
	for _, s := range got.States {
		if hidden := map[bool]string{true: "1 failed, 1 pending"}[s.State == fleet.StatusPaused]; s.Hidden() != hidden {
			t.Errorf("%s hides %q", s.State, s.Hidden())
		}
		if (s.State == fleet.StatusPaused) != (s.Otherwise != nil) || s.Otherwise != nil && !maps.Equal(s.Otherwise, want) {
			t.Errorf("%s: %v", s.State, s.Otherwise)
		}
	}
	if p := of(all[:4]).Manifests[0].Oldest; p == nil || p.Node != "a" || !p.Paused {
		t.Errorf("with paused ones alone: %+v", p)
	}
}

// TestNode: since when a node has its status, and since when its assignment is pending.
func TestNode(t *testing.T) {
	t.Parallel()
	const motd, own = "group.web.motd", "node.a.own"
	entries := []model.Entry{summaryEntry(motd, 7, time.Hour), summaryEntry(own, 7, 2*time.Hour)}
	pending := func(n *model.Node) { n.Manifests[motd] = model.ManifestState{Revision: 6} }
	for name, c := range map[string]struct {
		change func(*model.Node)
		status fleet.Status
		since  time.Time
	}{
		"pending": {pending, fleet.StatusPending, now.Add(-2 * time.Hour)},
		"failed":  {failed(motd, "x"), fleet.StatusFailed, now.Add(-time.Minute)},
		"failed again": {func(n *model.Node) {
			failed(motd, "x")(n)
			m := n.Manifests[motd]
			m.FailedSince = now.Add(-time.Hour)
			n.Manifests[motd] = m
		}, fleet.StatusFailed, now.Add(-time.Hour)},
		"unreachable": {func(n *model.Node) { n.Silent, n.Heard = true, now.Add(-time.Second) }, fleet.StatusUnreachable, now.Add(-time.Second)},
		"up to date": {func(n *model.Node) {
			for _, key := range []string{motd, own} {
				n.Manifests[key] = model.ManifestState{Revision: 7, Outcome: model.OutcomeStable, At: now}
			}
		}, fleet.StatusOK, time.Time{}},
	} {
		n := summaryNode("a", c.change)
		got := view.NewNode(n, fleet.NewAssigned(entries).Statuses(n), fleet.NewAssigned(entries))
		if got.State != c.status || !got.Since.Equal(c.since) || len(got.Statuses) != 2 {
			t.Errorf("%s: %s since %s, %+v", name, got.State, got.Since, got.Statuses)
		}
		if got.BeganAt() != (name != "failed") {
			t.Errorf("%s: whether it began then: %t", name, got.BeganAt())
		}
		if own := got.Statuses[1]; !own.Assigned.Equal(now.Add(-2*time.Hour)) || own.Late() != (name != "up to date") {
			t.Errorf("%s: %+v", name, own)
		}
	}
}

// TestLate: a node that is away is late only for a revision that it did not run.
func TestLate(t *testing.T) {
	t.Parallel()
	const motd = "group.web.motd"
	entries := []model.Entry{summaryEntry(motd, 7, time.Hour)}
	for name, c := range map[string]struct {
		m    model.ManifestState
		want bool
	}{
		"ran":        {model.ManifestState{Revision: 7, Outcome: model.OutcomeStable, At: now}, false},
		"failed":     {model.ManifestState{Revision: 7, Outcome: model.OutcomeFailed, At: now, FailedSince: now}, false},
		"accepted":   {model.ManifestState{Revision: 7}, true},
		"an earlier": {model.ManifestState{Revision: 6, Outcome: model.OutcomeStable, At: now}, true},
		"none":       {model.ManifestState{}, true},
	} {
		for away, be := range map[string]func(*model.Node){
			"unreachable": func(n *model.Node) { n.Silent = true },
			"stopped":     func(n *model.Node) { n.Event = model.NodeStopped },
		} {
			n := summaryNode("a", func(n *model.Node) {
				be(n)
				n.Manifests[motd] = c.m
			})
			got := view.NewNode(n, fleet.NewAssigned(entries).Statuses(n), fleet.NewAssigned(entries)).Statuses[0]
			if got.Late() != c.want || got.Status != fleet.StatusUnreachable || got.Began().IsZero() == c.want {
				t.Errorf("%s, %s: late %t since %s: %+v", away, name, got.Late(), got.Began(), got)
			}
		}
	}
}

// TestKnownNodesAreCountedAlike: the overview of nodes that a view knows equals the overview of their states.
func TestKnownNodesAreCountedAlike(t *testing.T) {
	t.Parallel()
	const motd = "group.web.motd"
	entries := []model.Entry{summaryEntry(motd, 7, time.Hour), summaryEntry("node.web001.own", 7, 2*time.Hour), summaryEntry("node.web090.own", 7, 3*time.Hour), summaryEntry("node.web0905.own", 7, 3*time.Hour)}
	var nodes []model.Node
	for i := range 101 {
		nodes = append(nodes, summaryNode(fmt.Sprintf("web%03d", i), func(n *model.Node) {
			n.Version = fmt.Sprintf("1.%d.0", i/40)
			n.Message = strings.Repeat("no", i%3)
			n.Outbox, n.Clock.Offset = i%7, model.Offset(i%5)*model.Offset(time.Minute)
			n.Manifests[motd] = model.ManifestState{Revision: 7, Outcome: model.OutcomeNoop}
			n.Flapping = []model.FlappingState{{Manifest: motd, Resource: model.Ref{Type: "file", Name: fmt.Sprint("/", i%3)}}}
			switch i % 6 {
			case 0:
				failed(motd, fmt.Sprint("exit code ", i%4))(n)
			case 1:
				n.Manifests[motd] = model.ManifestState{Revision: 6, Outcome: model.OutcomeStable, Seen: 7, Late: "refused: not signed"}
			case 2:
				n.Manifests[motd] = model.ManifestState{Revision: 6, Outcome: model.OutcomeStable}
			case 3:
				n.Silent = true
			case 4:
				n.Unreadable = "garbage"
			}
		}))
	}
	text := func(s view.Summary) string {
		out, err := json.MarshalIndent(s, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	want := text(view.SummaryOf(nodes, entries, "1.2.0", now))
	if strings.Count(want, "web001") < 4 || !strings.Contains(want, "never seen: 1;") {
		t.Fatalf("of their states: %s", want)
	}
	if got := text(view.KnownSummary(nodes, fleet.NewAssigned(entries), "1.2.0", now)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// BenchmarkOf computes the overview of 10,000 nodes, each with five manifests of groups and one of its own.
// Some fail.
func BenchmarkOf(b *testing.B) {
	var nodes []model.Node
	var entries []model.Entry
	var keys []string
	for _, name := range []string{"base", "sshd", "motd", "users", "app"} {
		keys = append(keys, "group.web."+name)
		entries = append(entries, summaryEntry("group.web."+name, 7, time.Hour))
	}
	for i := range 10_000 {
		name := fmt.Sprintf("web%05d", i)
		own := "node." + name + ".own"
		entries = append(entries, summaryEntry(own, 7, time.Hour))
		nodes = append(nodes, summaryNode(name, func(n *model.Node) {
			for _, key := range append(keys, own) {
				n.Manifests[key] = model.ManifestState{Revision: 7, Outcome: model.OutcomeStable}
			}
			if i%10 == 0 {
				failed(keys[i%5], fmt.Sprintf("%s:4:11: exec#/bin/false: exit code %d", keys[i%5], i%70))(n)
			}
		}))
	}
	before := summaryCpu(b)
	for b.Loop() {
		view.SummaryOf(nodes, entries, "1.2.0", now)
	}
	b.ReportMetric(float64((summaryCpu(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
}

// cpu returns the time that this process took of processors.
func summaryCpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}

	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestFailuresOfALine: what fails at one line of a manifest is one failure, however much of a node is in its text.
func TestFailuresOfALine(t *testing.T) {
	t.Parallel()
	const app = "group.web.app"
	var nodes []model.Node
	for i := range 20 {
		name := fmt.Sprintf("n%02d", 19-i%10*2-i/10)
		nodes = append(nodes, summaryNode(name, failed(app, app+":8:11: file#/srv/"+name+"/extra.conf: no directory")))
	}
	add := func(name, text string) { nodes = append(nodes, summaryNode(name, failed(app, text))) }
	add("o1", app+":8:11: file#/srv/o1/extra.conf: no space")
	add("o2", app+":8:11: file#/srv/o1/extra.conf: no space")
	add("p1", app+":8:11: exec#/bin/false: exit code 1") // another revision of it
	add("p2", app+":9:11: file#/srv/p2: no directory")
	add("p3", "manifest timed out on p3")
	add("p4", "manifest timed out on p4")
	slices.SortFunc(nodes, func(a, b model.Node) int { return strings.Compare(a.Node, b.Node) })
	got := view.SummaryOf(nodes, []model.Entry{summaryEntry(app, 7, 24*time.Hour)}, "1.2.0", now).Failing
	if len(got) != 5 {
		t.Fatalf("%+v", got)
	}
	first := got[0]
	if first.Nodes != 22 || first.Differ != 20 || first.Error != "app:8:11: file#/srv/o1/extra.conf: no space" || !slices.Equal(first.First, []string{"n00", "n01", "n02", "n03", "n04", "n05", "n06", "n07", "n08", "n09"}) {
		t.Errorf("%+v", first)
	}
	texts := 0
	for f := range first.Texts() {
		if texts++; f.Nodes < 1 || f.Differ != 0 {
			t.Errorf("%+v", f)
		}
	}
	if texts != 21 {
		t.Errorf("%d texts", texts)
	}
	if first.Differs() != " (the text differs on 20 of them)" || got[1].Differs() != "" {
		t.Errorf("%q, %q", first.Differs(), got[1].Differs())
	}
}

// TestRejectionsOfSeveralKeys: the problems of a manifest that nodes have under different keys are one error,
// also with several problems.
func TestRejectionsOfSeveralKeys(t *testing.T) {
	t.Parallel()
	rejected := func(key string) func(*model.Node) {
		return func(n *model.Node) {
			n.Manifests[key] = model.ManifestState{Seen: 7, Late: model.LateRejected + key + ":5:11: no such fact; " + key + ":8:11: no such fact"}
		}
	}
	const a, b = "node.a.app", "node.b.app"
	got := view.SummaryOf([]model.Node{summaryNode("a", rejected(a)), summaryNode("b", rejected(b))}, []model.Entry{summaryEntry(a, 7, time.Hour), summaryEntry(b, 7, time.Hour)}, "1.2.0", now)
	if len(got.Failing) != 1 || got.Failing[0].Nodes != 2 || got.Failing[0].Differ != 0 || got.Failing[0].Error != "app:5:11: no such fact; app:8:11: no such fact" {
		t.Errorf("%+v", got.Failing)
	}
}
