package view_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// names returns the nodes of a page.
func names(t *testing.T, f *view.Fleet, q view.NodeQuery) []string {
	t.Helper()
	p, err := f.Nodes(q)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, r := range p.Rows {
		out = append(out, r.Node)
	}

	return out
}

// TestSilenceNeedsNoEvent: a silent node becomes unreachable, and readers are notified.
func TestSilenceNeedsNoEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := view.New(view.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); f.Run(ctx) }()
		f.SetAssignments([]model.Entry{entry("group.web.motd", 7)})
		f.SetNode(node("web1", time.Now(), model.OutcomeStable, "group.web.motd"))
		changed, stop := f.Changes()
		<-changed
		if o := f.Overview(); o.States[0].State != fleet.StatusOK {
			t.Errorf("at first %+v", o.States)
		}
		<-changed
		if d, _ := f.Node("web1"); time.Since(d.Heard) < time.Minute || d.State != fleet.StatusUnreachable {
			t.Errorf("after %s it is %s", time.Since(d.Heard), d.State)
		}
		if o := f.Overview(); o.States[0].State != fleet.StatusUnreachable || o.Manifests[0].Unreachable != 1 {
			t.Errorf("then %+v", o.States)
		}
		f.SetNode(node("web1", time.Now(), model.OutcomeFailed, "group.web.motd"))
		<-changed
		if o := f.Overview(); o.States[0].State != fleet.StatusFailed || len(o.Failing) != 1 {
			t.Errorf("back: %+v", o.States)
		}
		stop()
		cancel()
		<-done
	})
}

// TestNodesOfAList: reports newer than the request for the list stay.
func TestNodesOfAList(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	if f.Progress().Nodes {
		t.Error("complete before anything is known")
	}
	f.SetNode(node("old", time.Now(), "", "group.web.motd"))
	f.SetNode(node("changed", time.Now(), ""))
	asked := time.Now()
	f.SetNode(node("new", time.Now(), ""))
	f.SetNode(node("changed", time.Now(), "", "group.web.motd"))
	f.SetNodes(asked, []model.Node{node("changed", time.Now(), ""), node("listed", time.Now(), "")})
	f.SetAssignments(nil)
	if got := names(t, f, view.NodeQuery{}); !slices.Equal(got, []string{"changed", "listed", "new"}) {
		t.Errorf("nodes %v", got)
	}
	if d, _ := f.Node("changed"); len(d.Manifests) != 1 {
		t.Errorf("an older state won: %+v", d.Manifests)
	}
	if !f.Progress().Nodes {
		t.Error("not complete")
	}
	f.RemoveNode("new")
	if _, is := f.Node("new"); is {
		t.Error("still known")
	}
}

// TestAssignmentsChange updates the statuses of the assigned nodes, and of nodes that still run an unassigned
// manifest.
func TestAssignmentsChange(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	now := time.Now()
	f.SetNodes(now, []model.Node{node("web1", now, model.OutcomeStable, "group.web.motd"), node("web2", now, model.OutcomeStable, "node.web2.own", "group.gone.x")})
	status := func(want ...string) {
		t.Helper()
		var got []string
		for _, name := range []string{"web1", "web2"} {
			d, _ := f.Node(name)
			for _, s := range d.Statuses {
				got = append(got, fmt.Sprint(name, " ", s.Key, " ", s.Status))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("statuses %q, want %q", got, want)
		}
	}
	f.SetAssignments([]model.Entry{entry("group.web.motd", 7), entry("group.gone.x", 7)})
	status("web1 group.web.motd up-to-date", "web2 group.web.motd pending", "web2 node.web2.own unassigned")
	f.SetAssignments([]model.Entry{entry("group.web.motd", 8), entry("node.web2.own", 7), entry("node.web9.own", 7)})
	status("web1 group.web.motd pending", "web2 group.web.motd pending", "web2 node.web2.own up-to-date", "web2 group.gone.x unassigned")
	d, is := f.Manifest(view.ManifestQuery{Name: "own"})
	if !is || d.Matching != 2 || d.Nodes[0].Node != "web9" || d.Nodes[0].Status != fleet.StatusUnreachable || d.Nodes[0].Assigned.IsZero() || len(d.Keys) != 2 || d.Changed.IsZero() || d.Targets != 2 {
		t.Errorf("own: %+v", d)
	}
	if d, _ := f.Manifest(view.ManifestQuery{Name: "own", Status: fleet.StatusUpToDate}); d.Matching != 1 || d.Nodes[0].Node != "web2" {
		t.Errorf("own up to date: %+v", d.Nodes)
	}
	if _, is := f.Manifest(view.ManifestQuery{Name: "none"}); is {
		t.Error("what is not assigned is known")
	}
}

// TestQueriesOfNodes: search, targets, states, sorting and pages.
func TestQueriesOfNodes(t *testing.T) {
	t.Parallel()
	asked := 0
	f := view.New(view.Options{Facts: func(_ context.Context, nodes []string) iter.Seq2[model.NodeFacts, error] {
		asked++
		return func(yield func(model.NodeFacts, error) bool) {
			for _, n := range nodes {
				if n != "web3" && !yield(model.NodeFacts{Node: n, Facts: model.Facts{"name": n}}, nil) {
					return
				}
			}
		}
	}, Inventories: func(_ context.Context, nodes []string) iter.Seq2[model.Inventory, error] {
		return func(yield func(model.Inventory, error) bool) {
			for _, n := range nodes {
				if n != "web3" && !yield(model.Inventory{Node: n, Packages: []model.Package{{Name: "tool", Version: "1." + n[3:], Manager: "deb"}}}, nil) {
					return
				}
			}
		}
	}})
	now := time.Now()
	var all []model.Node
	for i := range 5 {
		n := node(fmt.Sprintf("web%d", i), now.Add(-time.Duration(i)*time.Second), model.OutcomeStable, "group.web.motd")
		n.Labels = map[string]string{"rack": fmt.Sprintf("a%d", i%2)}
		n.Version = []string{"1.10.0", "1.9.0", "1.2.0", "1.2.0", "1.2.0"}[i]
		if i == 2 {
			n.Manifests["group.web.motd"] = model.ManifestState{Revision: 7, Outcome: model.OutcomeFailed, Error: "no space", Counts: model.Counts{Total: 1, Failed: 1}, At: now}
		}
		all = append(all, n)
	}
	f.SetNodes(now, all)
	f.SetAssignments([]model.Entry{entry("group.web.motd", 7)})
	for name, c := range map[string]struct {
		view.NodeQuery
		want string
	}{
		"all":         {view.NodeQuery{}, "web0 web1 web2 web3 web4"},
		"state":       {view.NodeQuery{State: fleet.StatusFailed}, "web2"},
		"search":      {view.NodeQuery{Search: "RACK=A1"}, "web1 web3"},
		"target":      {view.NodeQuery{On: `labels.rack == "a0" && state == "ok"`}, "web0 web4"},
		"manifest":    {view.NodeQuery{On: `manifest("motd").outcome == "failed"`}, "web2"},
		"facts":       {view.NodeQuery{On: `facts.name in ["web1", "web3"]`}, "web1"},
		"facts again": {view.NodeQuery{On: `facts.name in ["web1", "web3"]`, Descending: true}, "web1"},
		"packages":    {view.NodeQuery{On: `package("tool") != nil && newer(package("tool").version, "1.1")`}, "web2 web4"},
		"by state":    {view.NodeQuery{Sort: "state", Limit: 2}, "web2 web0"},
		"by heard":    {view.NodeQuery{Sort: "heard", Offset: 3}, "web1 web0"},
		"by version":  {view.NodeQuery{Sort: "version", Descending: true, Limit: 2}, "web0 web1"},
		"beyond":      {view.NodeQuery{Offset: 9}, ""},
	} {
		if got := strings.Join(names(t, f, c.NodeQuery), " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if asked != 1 {
		t.Errorf("facts were asked for %d times", asked)
	}
	p, err := f.Nodes(view.NodeQuery{On: `facts.name in ["web1", "web3"]`, State: fleet.StatusOK})
	if err != nil || p.Known != 5 || p.Matching != 1 || len(p.Undecided) != 1 || p.Undecided[0].Node != "web3" || len(p.States) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	if row := p.Rows[0]; row.Reason != "" || row.Tally.UpToDate != 1 || row.Labels["rack"] != "a1" {
		t.Errorf("row %+v", row)
	}
	if p, _ := f.Nodes(view.NodeQuery{State: fleet.StatusFailed}); p.Rows[0].Reason != "group.web.motd: no space (1 resource, 1 failed)" || len(p.States) != 2 {
		t.Errorf("row %+v, states %+v", p.Rows[0], p.States)
	}
	if _, err := f.Nodes(view.NodeQuery{On: "nonsense("}); err == nil {
		t.Error("no error")
	}
}

// TestNodeWarnings: with more nodes than one evaluation takes, a name of any node is known.
func TestNodeWarnings(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	now := time.Now()
	all := make([]model.Node, 1200)
	for i := range all {
		all[i] = node(fmt.Sprintf("web%04d", i), now, model.OutcomeStable, "group.web.motd")
	}
	all[0].Labels = map[string]string{"rack": "a3"}
	f.SetNodes(now, all)
	for on, want := range map[string]string{
		`labels.rack == "a4"`:                 "[]",
		`labels.rak == "a3"`:                  "[no node has labels.rak; did you mean labels.rack?]",
		`group("wep")`:                        `[no node is in the group "wep"; did you mean web?]`,
		`any(groups, # == "wep")`:             `[no node is in the group "wep"; did you mean web?]`,
		`node in ["web0000", "web1199"]`:      "[]",
		`node == "web12000"`:                  `[no node has the name "web12000"; did you mean web1000?]`,
		`manifest("motd").status == "failed"`: "[]",
		`manifest("mtd").status == "failed"`:  `[no node has the manifest "mtd"; did you mean motd?]`,
	} {
		p, err := f.Nodes(view.NodeQuery{On: on})
		if got := fmt.Sprint(p.Warnings); err != nil || got != want {
			t.Errorf("%s: %s, %v", on, got, err)
		}
		s, err := f.Select(on)
		if got := fmt.Sprint(s.Warnings); err != nil || got != want {
			t.Errorf("select %s: %s, %v", on, got, err)
		}
	}
}

// TestStatesStayWhole: the compact form of a node's manifests returns all reported fields at any time.
func TestStatesStayWhole(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	now := time.Date(2026, 11, 26, 12, 0, 0, 123456789, time.UTC)
	counts := model.Counts{Total: 9, Unique: 8, Changed: 7, Failed: 6, Skipped: 5, Stable: 4, Refreshed: 3, Unmet: 2, NotRun: 1, Noop: 1, HealthChecks: model.HealthCounts{OK: 1, Critical: 2}}
	want := map[string]model.ManifestState{
		"group.web.none":   {},
		"group.web.stable": {Revision: 7, Digest: "sha256-1", Outcome: model.OutcomeStable, At: now, Counts: counts},
		"group.web.failed": {Revision: 7, Digest: "sha256-1", Outcome: model.OutcomeFailed, At: now, Counts: counts, Error: "no space", FailedSince: now.Add(-time.Hour)},
		"group.web.late":   {Revision: 6, Digest: "sha256-2", Outcome: model.OutcomeStable, At: now, Seen: 7, SeenAt: now, Late: "refused: not signed"},
		"group.web.began":  {Revision: 1, At: time.Unix(0, 0).UTC()},
	}
	for _, name := range []string{"web1", "web2"} {
		n := node(name, time.Now(), "")
		n.Manifests = maps.Clone(want)
		f.SetNode(n)
	}
	for range 2 {
		for _, name := range []string{"web1", "web2"} {
			n, _ := f.State(name)
			if d, _ := f.Node(name); !reflect.DeepEqual(d.Manifests, want) || !reflect.DeepEqual(n.Manifests, want) {
				t.Errorf("%+v, want %+v", d.Manifests, want)
			}
		}
		f.SetAssignments([]model.Entry{entry("group.web.failed", 7), {Key: "group.web.late", Revision: 7, Time: now}})
	}
	if o := f.Overview(); len(o.Failing) != 2 || o.Failing[0].Error != "no space" || !o.Failing[0].Since.Equal(now.Add(-time.Hour)) || o.Failing[1].Error != "not signed" {
		t.Errorf("failing: %+v", o.Failing)
	}
	// A clock that is wrong by centuries changes the time alone.
	for _, wrong := range []int{1, 1600, 2300, 9999} {
		n := node("web1", time.Now(), "")
		n.Manifests["group.web.failed"] = model.ManifestState{Revision: 7, Outcome: model.OutcomeFailed, At: time.Date(wrong, 2, 1, 0, 0, 0, 0, time.UTC)}
		f.SetNode(n)
		d, _ := f.Node("web1")
		if at := d.Manifests["group.web.failed"].At; at.IsZero() || at.After(now) != (wrong > 2026) {
			t.Errorf("of %d: %s", wrong, at)
		}
	}
}

// TestNobodyIsSilentWhileBlind tests that nodes keep their states while the server itself has no data, and that a
// node that stores nothing afterwards becomes unreachable.
func TestNobodyIsSilentWhileBlind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := view.New(view.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); f.Run(ctx) }()
		defer func() { cancel(); <-done }()
		state := func(name string) fleet.Status {
			t.Helper()
			d, known := f.Node(name)
			if !known {
				t.Fatal(name)
			}
			return d.State
		}
		f.SetAssignments([]model.Entry{entry("group.web.motd", 7)})
		start := time.Now()
		f.SetNode(node("late", start.Add(-10*time.Minute), model.OutcomeStable, "group.web.motd"))
		for _, name := range []string{"back", "gone"} {
			f.SetNode(node(name, start, model.OutcomeStable, "group.web.motd"))
		}
		<-time.After(20 * time.Second)
		since := time.Now()
		f.Blind("connection", since)
		f.Blind("leader", since.Add(time.Second))
		f.SetNodes(since, []model.Node{node("late", start.Add(-10*time.Minute), model.OutcomeStable, "group.web.motd"), node("back", start, model.OutcomeStable, "group.web.motd"), node("gone", start, model.OutcomeStable, "group.web.motd")})
		<-time.After(13 * time.Hour)
		f.Sees("connection")
		<-time.After(time.Hour)
		if got := f.Progress().BlindSince; !got.Equal(since) {
			t.Errorf("blind since %s, want %s", got, since)
		}
		if state("back") != fleet.StatusOK || state("gone") != fleet.StatusOK || state("late") != fleet.StatusUnreachable {
			t.Errorf("while blind: %s, %s, %s", state("back"), state("gone"), state("late"))
		}
		f.Sees("leader")
		<-time.After(20 * time.Second)
		f.SetNode(node("back", time.Now(), model.OutcomeStable, "group.web.motd"))
		if !f.Progress().BlindSince.IsZero() || state("back") != fleet.StatusOK || state("gone") != fleet.StatusOK {
			t.Errorf("soon after: %s, %s", state("back"), state("gone"))
		}
		<-time.After(45 * time.Second)
		if state("back") != fleet.StatusOK || state("gone") != fleet.StatusUnreachable {
			t.Errorf("later: %s, %s", state("back"), state("gone"))
		}
	})
}
