package view_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/fleet"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// TestAFloodPushesOutNobodyElse: other nodes keep their share of reports, and the flooding node its newest.
func TestAFloodPushesOutNobodyElse(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{Events: 1000, Runs: 1000})
	seq := uint64(0)
	add := func(name string) {
		seq++
		id := fmt.Sprintf("run%d", seq)
		f.Add(message(seq, 0, failureOf(name, "group.web.motd", id, "/"+name+id), runOf(name, "group.web.motd", id, model.OutcomeFailed)))
		r := document(name, model.KindEnsure, model.ProtocolEnsureResponse, model.OutcomeStable, model.EnsureResponse{})
		r.CorrelationID = "q" + id
		f.Add(message(1_000_000+seq, 0, r))
	}
	for range 10 {
		for i := range 10 {
			add(fmt.Sprintf("web%d", i))
		}
	}
	for range 1500 {
		add("flood")
	}
	for i := range 10 {
		name := fmt.Sprintf("web%d", i)
		if got := f.Events(view.EventQuery{Node: name}); len(got.Events) != 10 {
			t.Errorf("%d events of %s are left", len(got.Events), name)
		}
		if got := f.Runs(view.EventQuery{Node: name}); len(got) != 10 {
			t.Errorf("%d runs of %s are left", len(got), name)
		}
	}
	if got := f.Events(view.EventQuery{Node: "flood", Limit: 1000}).Events; len(got) != 900 || got[0].Seq != 1_000_000+seq {
		t.Errorf("%d events of the flood, the newest %d", len(got), got[0].Seq)
	}
	requests := f.Requests()
	if len(requests) != 1000 || !slices.ContainsFunc(requests, func(r view.RequestRow) bool { return r.ID == "qrun1" }) {
		t.Errorf("%d requests", len(requests))
	}
	if top := f.Overview().Top.Failing; len(top) != 20 {
		t.Errorf("%d failing", len(top))
	}
}

// TestTheLastOfANodeStays: of a known node, however many others report, and as long as it is
// known.
func TestTheLastOfANodeStays(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{Events: 100, Runs: 100})
	f.SetNode(node("quiet", time.Now(), model.OutcomeStable))
	f.AddRuns(message(5, time.Hour, runOf("quiet", "group.web.motd", "r5", model.OutcomeStable)))
	for i := range 4 {
		f.Add(message(uint64(i+1), time.Hour, runOf("quiet", "group.web.motd", fmt.Sprintf("r%d", i+1), model.OutcomeStable)))
	}
	for i := range 1000 {
		f.Add(message(uint64(100+i), 0, runOf(fmt.Sprintf("web%d", i), "group.web.motd", fmt.Sprintf("r%d", i), model.OutcomeStable)))
	}
	d, _ := f.Node("quiet")
	var runs []string
	for _, r := range d.Runs {
		runs = append(runs, r.RunID)
	}
	if !slices.Equal(runs, []string{"r5", "r4", "r3"}) || !slices.Equal(seqs(d.Events), []uint64{4, 3, 2}) {
		t.Errorf("runs %v, events %v", runs, seqs(d.Events))
	}
	f.Add(message(5000, 0, runOf("quiet", "group.web.motd", "r9", model.OutcomeStable)))
	if d, _ := f.Node("quiet"); !slices.Equal(seqs(d.Events), []uint64{5000, 4, 3}) {
		t.Errorf("then events %v", seqs(d.Events))
	}
	f.RemoveNode("quiet")
	f.SetNode(node("quiet", time.Now(), model.OutcomeStable))
	if d, _ := f.Node("quiet"); !slices.Equal(seqs(d.Events), []uint64{5000}) {
		t.Errorf("of another of the name: %v", seqs(d.Events))
	}
}

// TestLongTextsAreCut: what a node says takes little memory, and too much of it none.
func TestLongTextsAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 500_000)
	f := view.New(view.Options{})
	n := node("web1", time.Now(), model.OutcomeFailed, "group.web.motd")
	n.Message, n.Host, n.Version, n.Labels = long, long, long, map[string]string{"rack": long}
	n.RejectedControl = map[string]string{"node.web1.pause": long}
	n.Manifests["group.web.motd"] = model.ManifestState{Revision: 7, Outcome: model.OutcomeFailed, Error: long, Late: long, Digest: long}
	many := node("web2", time.Now(), model.OutcomeStable)
	for i := range 3000 {
		many.Manifests[fmt.Sprintf("group.web.m%d", i)] = model.ManifestState{Revision: 1}
	}
	paused := node("web3", time.Now(), model.OutcomeStable)
	paused.Paused = &model.Paused{By: long, Reason: long, From: long}
	rejects := node("web4", time.Now(), model.OutcomeStable)
	rejects.RejectedControl = map[string]string{}
	for i := range 3000 {
		rejects.RejectedControl[fmt.Sprintf("group.g%d.pause", i)] = "no"
	}
	f.SetNodes(time.Now(), []model.Node{n, many, paused, rejects})
	f.SetAssignments([]model.Entry{entry("group.web.motd", 7)})
	r := failureOf(long[:1000], "group.web."+long, long, long)
	r.ID, r.CorrelationID, r.Cause = long, long, model.Cause(long)
	f.Add(message(1, 0, r))
	d, _ := f.Node("web1")
	away, _ := f.Node("web3")
	if away.State != fleet.StatusPaused {
		t.Errorf("it is %s", away.State)
	}
	p, err := f.Nodes(view.NodeQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for what, shown := range map[string]any{"a node": d, "a paused node": []any{away, *away.Paused}, "a list": p, "events": f.Events(view.EventQuery{}), "the overview": f.Overview().Summary} {
		if size := len(fmt.Sprint(shown)); size > 30_000 {
			t.Errorf("%s has %d bytes", what, size)
		}
	}
	if d, _ := f.Node("web2"); d.Unreadable != "" || len(d.Manifests) != 2000 || d.OmittedManifests != 1000 {
		t.Errorf("%s %s, %d manifests and %d more", d.State, d.Unreadable, len(d.Manifests), d.OmittedManifests)
	}
	if d, _ := f.Node("web4"); d.Unreadable != "it has 3000 rejected control documents, the limit is 100; remove them from the bucket" || len(d.RejectedControl) != 0 || len(d.Groups) == 0 {
		t.Errorf("%s %s, groups %q", d.State, d.Unreadable, d.Groups)
	}
}

// TestManyManifests shows a node with 2,500 assigned manifests as the terminal does, in any order of the data. Manifests
// without an assignment are bounded, also after their assignments end.
func TestManyManifests(t *testing.T) {
	t.Parallel()
	const count = 2500
	reported := func() model.Node {
		n := node("f1", time.Now(), model.OutcomeStable)
		n.Host, n.Clock = "f1.example.net", model.ClockOffset{Offset: model.Offset(time.Minute)}
		for i := range count {
			n.Manifests[fmt.Sprintf("node.f1.m%d", i)] = model.ManifestState{Revision: 1, Outcome: model.OutcomeStable, At: time.Now()}
		}

		return n
	}
	var assigned []model.Entry
	for i := range count {
		assigned = append(assigned, entry(fmt.Sprintf("node.f1.m%d", i), 1))
	}
	for _, nodesFirst := range []bool{false, true} {
		f := view.New(view.Options{})
		for _, nodes := range []bool{nodesFirst, !nodesFirst} {
			if nodes {
				f.SetNodes(time.Now(), []model.Node{reported()})
			} else {
				f.SetAssignments(assigned)
			}
		}
		n := reported()
		terminal := view.NewNode(n, fleet.NewAssigned(assigned).Statuses(n), fleet.NewAssigned(assigned))
		d, _ := f.Node("f1")
		if d.State != terminal.State || len(d.Statuses) != len(terminal.Statuses) || len(d.Manifests) != count || d.OmittedManifests != 0 || d.Unreadable != "" {
			t.Errorf("nodes first %t: %s %q, %d statuses; the terminal has %s, %d statuses", nodesFirst, d.State, d.Unreadable, len(d.Statuses), terminal.State, len(terminal.Statuses))
		}
		if d.Host != n.Host || d.Version != n.Version || len(d.Groups) != len(n.Groups) || d.Clock != n.Clock {
			t.Errorf("%+v", d.NodeState)
		}
		f.SetAssignments(assigned[:100])
		if d, _ := f.Node("f1"); len(d.Manifests) != 2100 || d.OmittedManifests != 400 || d.State != fleet.StatusOK {
			t.Errorf("after the end of assignments: %s, %d manifests and %d more", d.State, len(d.Manifests), d.OmittedManifests)
		}
	}
}

// TestFollow: events arrive in order, missed ones first. A reader that stops delays no other.
func TestFollow(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	add := func(seq uint64) {
		f.Add(message(seq, 0, runOf("web1", "group.web.motd", fmt.Sprintf("r%d", seq), model.OutcomeStable)))
	}
	for seq := uint64(11); seq <= 20; seq++ {
		add(seq)
	}
	slow, cancelSlow := f.Follow(view.EventQuery{})
	missed, cancel := f.Follow(view.EventQuery{After: 18})
	other, cancelOther := f.Follow(view.EventQuery{Node: "web2"})
	add(21)
	add(5) // of the past
	var got []uint64
	for range 3 {
		got = append(got, (<-missed).Seq)
	}
	if !slices.Equal(got, []uint64{19, 20, 21}) {
		t.Errorf("got %v", got)
	}
	cancel()
	if e, open := <-missed; open {
		t.Errorf("after the end %+v", e)
	}
	for seq := uint64(22); seq < 2000; seq++ {
		add(seq)
	}
	read := 0
	for range slow { // it is closed
		read++
	}
	if read == 0 || read > 1000 {
		t.Errorf("the slow one got %d", read)
	}
	cancelSlow() // once more
	select {
	case e, open := <-other:
		t.Errorf("the other got %+v, %v", e, open)
	default:
	}
	cancelOther()
	behind, cancel := f.Follow(view.EventQuery{After: 10})
	defer cancel()
	for range behind {
		read++
	}
}

// TestOldAndWrongTimes: the server's clock dates events, and events older than the retention do not count.
func TestOldAndWrongTimes(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{Keep: time.Hour})
	wrong := runOf("web1", "group.web.motd", "r1", model.OutcomeStable)
	wrong.Time = time.Now().Add(24 * time.Hour) // by the clock of the node
	f.Add(message(3, time.Minute, wrong))
	f.Add(message(2, 30*time.Minute, runOf("web1", "group.web.motd", "r2", model.OutcomeStable)))
	f.Add(message(1, 3*time.Hour, runOf("web1", "group.web.motd", "r3", model.OutcomeStable), failureOf("web1", "group.web.motd", "r3", "/etc/motd")))
	o := f.Overview()
	total := 0
	for i, p := range o.History {
		if total += p.Runs; i > 0 && !p.At.After(o.History[i-1].At) {
			t.Errorf("%s is not after %s", p.At, o.History[i-1].At)
		}
	}
	if total != 2 || len(o.Top.Failing) != 0 || o.History[len(o.History)-1].At.After(time.Now()) {
		t.Errorf("%d runs, %+v", total, o.Top)
	}
	f.SetSince(time.Now().Add(-10*time.Minute), false, false)
	if o := f.Overview(); len(o.History) > 52 || o.Progress.Since.IsZero() || o.Progress.History {
		t.Errorf("%d intervals since %s", len(o.History), o.Progress.Since)
	}
}

// TestNodesOfAResourceAreThoseOfTheTimeThatCounts, also where it never stops to fail: what failed
// on other nodes before is over there.
func TestNodesOfAResourceAreThoseOfTheTimeThatCounts(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{Keep: time.Hour})
	for i, ago := range []time.Duration{150, 100, 65, 30, 1} {
		name := fmt.Sprintf("web%d", i)
		f.Add(message(uint64(i+1), ago*time.Minute, failureOf(name, "group.web.motd", "r", "/etc/motd")))
	}
	if top := f.Overview().Top.Failing; len(top) != 1 || top[0].Count != 2 || top[0].Nodes != 2 || !slices.Equal(top[0].First, []string{"web3", "web4"}) {
		t.Errorf("failing: %+v", top)
	}
}

// TestWhatFailsOnMostNodesComesFirst: a lasting failure is reported once a day, so a flapping one on a single
// node has more reports.
func TestWhatFailsOnMostNodesComesFirst(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{Keep: time.Hour})
	seq := uint64(0)
	add := func(node, name string) {
		seq++
		f.Add(message(seq, time.Minute, failureOf(node, "group.web.motd", fmt.Sprint("r", seq), name)))
	}
	add("web1", "/goes/on")
	add("web2", "/goes/on")
	for range 5 {
		add("web3", "/comes/and/goes")
	}
	top := f.Overview().Top.Failing
	if len(top) != 2 || top[0].Resource != "file#/goes/on" || top[0].Nodes != 2 || top[0].Count != 2 || top[1].Count != 5 {
		t.Errorf("failing: %+v", top)
	}
}

// TestWhatFailsNowComesFirst: on how many nodes and since when is read from their states, since reports of an
// unchanged failure come once a day.
func TestWhatFailsNowComesFirst(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{Keep: 24 * time.Hour})
	seq := uint64(0)
	add := func(node, name string) {
		seq++
		f.Add(message(seq, 20*time.Minute, failureOf(node, "group.web.motd", fmt.Sprint("r", seq), name)))
	}
	for i := range 5 {
		add(fmt.Sprint("web", i), "/is/over")
	}
	add("web1", "/goes/on: and on #2")
	f.SetAssignments([]model.Entry{{Key: "group.web.motd", Revision: 3, Time: time.Now().Add(-5 * time.Hour)}})
	since := time.Now().Add(-3 * time.Hour).UTC().Truncate(time.Second)
	fails := func(node, text string, since time.Time) {
		f.SetNode(model.Node{Heard: time.Now(), NodeState: model.NodeState{Node: node, Groups: []string{"web"}, At: time.Now(), Manifests: map[string]model.ManifestState{
			"group.web.motd": {Revision: 3, Outcome: model.OutcomeFailed, At: time.Now(), Error: text, FailedSince: since, Counts: model.Counts{Total: 1, Failed: 1}},
		}}})
	}
	fails("web1", "group.web.motd:3:5: file#/goes/on: and on #2: no space", since)
	fails("web5", "group.web.motd:3:5: file#/goes/on: and on #2: no space", since)
	fails("web2", "file#/goes/on: and on #2: other: error", since.Add(time.Hour))
	fails("web3", "group.web.motd:3:5: file#/unknown: no space", since)
	fails("web4", "manifest timed out", since)
	top := f.Overview().Top.Failing
	if len(top) != 2 || top[0].Resource != "file#/goes/on: and on #2" || top[0].Now != 3 || !top[0].Since.Equal(since) || top[0].Count != 1 || top[1].Now != 0 || !top[1].Since.IsZero() || top[1].Count != 5 {
		t.Errorf("failing: %+v", top)
	}
	if m, _ := f.Manifest(view.ManifestQuery{Name: "motd"}); len(m.Top.Failing) != 2 || m.Top.Failing[0].Now != 3 {
		t.Errorf("failing of the manifest: %+v", m.Top.Failing)
	}
}

// TestWhatFailsBehindAnError: on how many nodes a resource fails now is a lower bound where others have more errors
// than their first.
func TestWhatFailsBehindAnError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		failed  []int
		atLeast map[string]bool
	}{
		{name: "one error each", failed: []int{1, 1, 1}},
		{name: "more errors on the nodes where it fails first", failed: []int{3, 2, 1}, atLeast: map[string]bool{"file#/b": true}},
		{name: "more errors on another node", failed: []int{1, 1, 2}, atLeast: map[string]bool{"file#/a": true}},
		{name: "more errors everywhere", failed: []int{2, 2, 2}, atLeast: map[string]bool{"file#/a": true, "file#/b": true}},
	} {
		f := view.New(view.Options{})
		f.SetAssignments([]model.Entry{{Key: "group.web.motd", Revision: 3, Time: time.Now().Add(-time.Hour)}})
		for i, name := range []string{"/a", "/a", "/b"} {
			node := fmt.Sprint("web", i)
			f.Add(message(uint64(i+1), time.Minute, failureOf(node, "group.web.motd", fmt.Sprint("r", i), name)))
			f.SetNode(model.Node{Heard: time.Now(), NodeState: model.NodeState{Node: node, Groups: []string{"web"}, At: time.Now(), Manifests: map[string]model.ManifestState{
				"group.web.motd": {Revision: 3, Outcome: model.OutcomeFailed, At: time.Now(), Error: "file#" + name + ": no space", Counts: model.Counts{Total: 3, Failed: c.failed[i]}},
			}}})
		}
		top := f.Overview().Top.Failing
		if len(top) != 2 || top[0].Now != 2 || top[1].Now != 1 {
			t.Errorf("%s: %+v", c.name, top)
		}
		for _, r := range top {
			if r.AtLeast != c.atLeast[r.Resource] {
				t.Errorf("%s: %s on %d nodes, AtLeast is %v", c.name, r.Resource, r.Now, r.AtLeast)
			}
		}
	}
}

// TestLongNamesFailNow: a resource with a shortened name matches the error with its full name.
func TestLongNamesFailNow(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	name := strings.Repeat("x", 270)
	f.Add(message(1, time.Minute, failureOf("web1", "group.web.motd", "r1", name)))
	f.SetAssignments([]model.Entry{{Key: "group.web.motd", Revision: 3, Time: time.Now().Add(-time.Hour)}})
	f.SetNode(model.Node{Heard: time.Now(), NodeState: model.NodeState{Node: "web1", Groups: []string{"web"}, At: time.Now(), Manifests: map[string]model.ManifestState{
		"group.web.motd": {Revision: 3, Outcome: model.OutcomeFailed, At: time.Now(), Error: "file#" + name + ": no space", FailedSince: time.Now(), Counts: model.Counts{Total: 1, Failed: 1}},
	}}})
	if top := f.Overview().Top.Failing; len(top) != 1 || top[0].Now != 1 {
		t.Errorf("%+v", top)
	}
}

// TestTurnOfTargets: how long others take before does not count as time of an expression.
func TestTurnOfTargets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := view.New(view.Options{Facts: func(ctx context.Context, _ []string) iter.Seq2[model.NodeFacts, error] {
			return func(yield func(model.NodeFacts, error) bool) {
				select {
				case <-time.After(15 * time.Second):
				case <-ctx.Done():
					yield(model.NodeFacts{}, ctx.Err())
				}
			}
		}})
		f.SetNode(model.Node{NodeState: model.NodeState{Node: "web01"}})
		var all sync.WaitGroup
		for _, on := range []string{`facts.os == "a"`, `facts.os == "b"`} {
			all.Go(func() {
				if _, err := f.Nodes(view.NodeQuery{On: on}); err != nil {
					t.Errorf("%s: %v", on, err)
				}
			})
		}
		all.Wait()
	})
}

// TestOneAnswer: a node that answers a request many times is one of those that answered.
func TestOneAnswer(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	for i, name := range []string{"web1", "web1", "web2", "web1"} {
		r := document(name, model.KindEnsure, model.ProtocolEnsureResponse, model.OutcomeFailed, model.EnsureResponse{ID: "q1", Phase: model.EnsureFailed})
		r.CorrelationID = "q1"
		f.Add(message(uint64(i+1), 0, r))
	}
	if got := f.Requests(); len(got) != 1 || got[0].Answers != 2 || got[0].Failed != 2 {
		t.Errorf("%+v", got)
	}
}
