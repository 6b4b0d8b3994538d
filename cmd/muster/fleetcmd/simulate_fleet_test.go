package fleetcmd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/simulate"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/testing/fleetsim"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// site is a manifest with two files.
func site(content string) []byte {
	return fmt.Appendf(nil, "muster:\n  resources:\n    - file:\n        - /etc/motd: {content: %q, owner: root, group: root, mode: '0644'}\n        - /etc/issue: {content: hello, owner: root, group: root, mode: '0644'}\n", content)
}

// play plays nodes against a server.
func play(t *testing.T, srv *natstest.Server, p simulate.Plan) *fleetcmd.SimulatedFleet {
	t.Helper()
	p.RunTime = time.Millisecond

	return fleetsim.Simulate(t, connect.Options{Servers: []string{srv.URL()}}, fleetcmd.SimulateOptions{Plan: p, PerConnection: 8})
}

// put assigns a manifest to all simulated nodes.
func put(t *testing.T, store *kvtest.Store, value []byte) uint64 {
	t.Helper()
	revision, err := store.Put(t.Context(), "group.sim.site", value)
	if err != nil {
		t.Fatal(err)
	}

	return revision
}

// outcomes waits until all nodes have reported their run of a revision, and returns how these
// ended, by node.
func outcomes(t *testing.T, store *kvtest.Store, revision uint64, count int) map[string]model.Run {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer stop()
	found := map[string]model.Run{}
	for r, err := range store.Reports(ctx, model.ReportRange{Kind: model.KindRun, Follow: true}) {
		if err != nil {
			t.Fatalf("%v, after %d of %d nodes", err, len(found), count)
		}
		var run model.Run
		if err := json.Unmarshal(r.Data, &run); err != nil {
			t.Fatal(err)
		}
		if run.Revision == revision && run.Cause == model.CauseManifest {
			found[r.Node] = run
		}
		if len(found) == count {
			return found
		}
	}
	t.Fatalf("%d of %d nodes reported revision %d", len(found), count, revision)

	return nil
}

// states waits until the states of all nodes have a run of a revision.
func states(t *testing.T, store *kvtest.Store, revision uint64, count int) []model.Node {
	t.Helper()
	var all []model.Node
	kvtest.Eventually(t, "all have run it", func() (bool, string) {
		var err error
		all, err = store.Nodes(t.Context())
		ran := 0
		for _, n := range all {
			if s := n.Manifests["group.sim.site"]; s.Revision == revision && s.Outcome != "" {
				ran++
			}
		}
		return err == nil && ran == count, fmt.Sprintf("%d of %d, %v", ran, len(all), err)
	})

	return all
}

// pinged returns the nodes that answer a ping.
func pinged(t *testing.T, store *kvtest.Store, count int) []string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer stop()
	var names []string
	for reply, err := range kvtest.Ask(ctx, requests.New(store.Store), store.Names.Request(kvstore.VerbPing, "group."+simulate.GroupSim), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if names = append(names, reply.Node); len(names) == count {
			break
		}
	}
	slices.Sort(names)

	return names
}

// TestAPushIsRunByAll, and the next push changes only the differences. All nodes answer a ping, also after a
// restart of the server.
func TestAPushIsRunByAll(t *testing.T) {
	t.Parallel()
	const count = 12
	srv, store := kvtest.New(t)
	f := play(t, srv, simulate.Plan{Nodes: count, Scenario: "stable"})
	if got := pinged(t, store, count); !slices.Equal(got, f.Names()) {
		t.Errorf("a ping was answered by %q", got)
	}
	revision := put(t, store, site("one"))
	for node, run := range outcomes(t, store, revision, count) {
		if run.Outcome() != model.OutcomeChanged || run.Counts.Changed != 2 {
			t.Errorf("%s: %+v", node, run)
		}
	}
	srv.Restart(t)
	kvtest.Eventually(t, "the server answers again", func() (bool, string) {
		_, err := store.Nodes(t.Context())
		return err == nil, fmt.Sprint(err)
	})
	revision = put(t, store, site("two"))
	for node, run := range outcomes(t, store, revision, count) {
		if run.Counts.Changed != 1 || run.Counts.Stable != 1 {
			t.Errorf("%s: %+v", node, run)
		}
	}
	for _, n := range states(t, store, revision, count) {
		if n.Silent || n.Manifests["group.sim.site"].Outcome != model.OutcomeChanged || n.Labels[simulate.Label] == "" {
			t.Errorf("%+v", n)
		}
	}
	if got := pinged(t, store, count); !slices.Equal(got, f.Names()) {
		t.Errorf("after a restart of the server a ping was answered by %q", got)
	}
	// What no node accepts is rejected by all, once, whatever else is assigned.
	revision = put(t, store, []byte("muster:\n  resources:\n    - nope:\n        - x: {}\n"))
	for node, run := range outcomes(t, store, revision, count) {
		if run.Outcome() != model.OutcomeRefused || !strings.Contains(run.Errors[0], "nope") {
			t.Errorf("%s: %+v", node, run)
		}
	}
	revision, err := store.Put(t.Context(), "group.sim.other", site("three"))
	if err != nil {
		t.Fatal(err)
	}
	outcomes(t, store, revision, count)
	rejections := 0
	for range store.Reports(t.Context(), model.ReportRange{Kind: model.KindRun, Outcome: string(model.OutcomeRefused)}) {
		rejections++
	}
	if rejections != count {
		t.Errorf("%d nodes reported %d rejections", count, rejections)
	}
}

// TestScriptsArePlayed: runs end the same for the same seed, and the kinds are seen as operators
// see them.
func TestScriptsArePlayed(t *testing.T) {
	t.Parallel()
	const count = 25
	ended := func(store *kvtest.Store, srv *natstest.Server) map[string]string {
		revision := put(t, store, site("one"))
		play(t, srv, simulate.Plan{Nodes: count, Scenario: "hostile", Seed: 3})
		found := map[string]string{}
		for node, run := range outcomes(t, store, revision, count-1) { // one is late
			found[node] = fmt.Sprint(run.Outcome(), run.Counts, run.Errors)
		}
		return found
	}
	srv, store := kvtest.New(t)
	first := ended(store, srv)
	seen := map[string]int{}
	kvtest.Eventually(t, "all kinds are seen", func() (bool, string) {
		all, err := store.Nodes(t.Context())
		clear(seen)
		for _, n := range all {
			s := n.Manifests["group.sim.site"]
			for kind, is := range map[string]bool{
				"silent": n.Silent, "skewed": n.Clock.Apparent(), "old": n.Version == "0.1.0", "backlog": n.Outbox > 12_000,
				"late": s.Revision > 0 && s.Outcome == "" && !n.Silent, "failing": s.Outcome == model.OutcomeFailed, "hostile": strings.Contains(n.Host, "<script>"),
			} {
				if is {
					seen[kind]++
				}
			}
		}
		return err == nil && len(seen) == 7 && seen["failing"] == 2 && len(all) == count, fmt.Sprint(seen, len(all), err)
	})
	srv, store = kvtest.New(t)
	if second := ended(store, srv); !maps.Equal(first, second) {
		t.Errorf("the runs of one seed ended as %v and %v", first, second)
	}
}

// TestRequestsAreAnswered, once for each id, also by nodes on which they fail; and reported.
func TestRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	const count = 25
	srv, store := kvtest.New(t)
	play(t, srv, simulate.Plan{Nodes: count, Scenario: "hostile"})
	ctx, stop := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer stop()
	ask := func(request string, answering int) map[model.EnsurePhase]int {
		t.Helper()
		seen, final := map[string]bool{}, map[model.EnsurePhase]int{}
		for reply, err := range kvtest.Ask(ctx, requests.New(store.Store), store.Names.Request(kvstore.VerbEnsure, "group."+simulate.GroupSim), []byte(request)) {
			var answer model.EnsureResponse
			if err == nil {
				err = json.Unmarshal(reply.Data, &answer)
			}
			if err != nil {
				t.Fatal(err, final)
			}
			if answer.Phase.Final() && !seen[reply.Node] {
				seen[reply.Node] = true
				final[answer.Phase]++
				if s := answer.State; s != nil && s.Type == "exec" && s.Outputs["stdout"] != "simulated: uptime\n" {
					t.Errorf("%+v", s)
				}
			}
			if len(seen) == answering {
				break
			}
		}
		return final
	}
	const there = count - 1 // one is silent
	for range 2 {
		if got := ask(`{"protocol":"io.choria.ccm.v1.resource.ensure.request","id":"one","type":"exec","properties":{"name":"uptime"}}`, there); got[model.EnsureDone] != there-2 || got[model.EnsureFailed] != 2 {
			t.Errorf("answers are %v", got)
		}
	}
	if got := ask(`{"protocol":"io.choria.ccm.v1.resource.ensure.request","id":"two","type":"file","properties":{"name":"/x"},"noop":true}`, there); got[model.EnsureDone] != there {
		t.Errorf("answers for noop are %v", got)
	}
	if got := ask(`{"protocol":"io.choria.ccm.v1.resource.ensure.request","id":"three","type":"file","properties":{"name":"/x"},"expires":"2020-01-01T00:00:00Z"}`, there); got[model.EnsureExpired] != there {
		t.Errorf("answers to what expired are %v", got)
	}
	// A cancel shows the result of a request, and prevents a later execution.
	const cancel = `{"protocol":"io.muster.v1.cancel.request","request":%q,"by":"ann","expires":"2030-01-01T00:00:00Z"}`
	if got := ask(fmt.Sprintf(cancel, "two"), there); got[model.EnsureDone] != there {
		t.Errorf("answers to the cancel of what is done are %v", got)
	}
	for _, request := range []string{fmt.Sprintf(cancel, "four"), `{"protocol":"io.choria.ccm.v1.resource.ensure.request","id":"four","type":"file","properties":{"name":"/x"}}`} {
		if got := ask(request, there); got[model.EnsureCancelled] != there {
			t.Errorf("answers to %s are %v", request, got)
		}
	}
	if got := ask(`{"type":`, there); got[model.EnsureFailed] != there {
		t.Errorf("answers to garbage are %v", got)
	}
	reported := map[string]int{}
	for r, err := range store.Reports(ctx, model.ReportRange{Kind: model.KindEnsure, Follow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if reported[r.CorrelationID]++; reported["three"] == there {
			break
		}
	}
	if reported["one"] != there || reported["two"] != there {
		t.Errorf("reported are %v", reported)
	}
}

// TestRate: as many reports are made as wanted.
func TestRate(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	put(t, store, site("one"))
	fleetsim.Simulate(t, connect.Options{Servers: []string{srv.URL()}}, fleetcmd.SimulateOptions{
		Plan: simulate.Plan{Nodes: 10, Scenario: "stable", RunTime: time.Millisecond}, Rate: 200,
	})
	ctx, stop := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer stop()
	kinds := map[string]int{}
	for r, err := range store.Reports(ctx, model.ReportRange{Follow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds[r.Kind]++
		if kinds[model.KindRun] > 60 && kinds[model.KindTransaction] > 20 && kinds[model.KindHealth] > 0 && kinds[model.KindNode] == 10 {
			break
		}
	}
}

// TestNothingIsLeft of a fleet that is removed; the names of others are not taken.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	if err := store.PutState(t.Context(), model.NodeState{Node: "sim-0005", Version: "1"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	revision := put(t, store, site("one"))
	fleet := func(count int) *fleetcmd.SimulatedFleet {
		t.Helper()
		f, err := fleetcmd.NewSimulation(fleetcmd.SimulateOptions{
			Plan: simulate.Plan{Nodes: count, Scenario: "stable", RunTime: time.Millisecond}, Types: resources.All(),
			Open: func(ctx context.Context, onStatus func(connect.Status)) (*kvstore.Store, error) {
				return kvstore.Open(ctx, connect.Options{Servers: []string{srv.URL()}, OnStatus: onStatus}, "")
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Close)
		return f
	}
	if err := fleet(5).CheckNames(t.Context(), store.Store); !errors.Is(err, simulate.ErrTaken) {
		t.Errorf("the name of a real node: %v", err)
	}
	f := fleet(3)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx, func() {}) }()
	states(t, store, revision, 3)
	if err := fleet(3).CheckNames(t.Context(), store.Store); !errors.Is(err, simulate.ErrTaken) {
		t.Errorf("the names of nodes that are played: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := f.Remove(t.Context(), store.Store); err != nil {
		t.Fatal(err)
	}
	if all, err := store.Nodes(t.Context()); err != nil || len(all) != 1 || all[0].Node != "sim-0005" {
		t.Errorf("%d nodes are left, %v", len(all), err)
	}
	for r, err := range store.Reports(t.Context(), model.ReportRange{}) {
		t.Errorf("left is %+v, %v", r, err)
	}
	if err := fleet(3).CheckNames(t.Context(), store.Store); err != nil {
		t.Error(err)
	}
}

// TestJoinedNodesMissNoRequest that is sent once all have joined.
func TestJoinedNodesMissNoRequest(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	f := play(t, srv, simulate.Plan{Nodes: 100, Scenario: "stable"})
	// Each is asked once: AskEach would ask those again that listen later.
	for _, node := range f.Names() {
		subject := store.Names.Request(kvstore.VerbPing, model.NodeFamily(node))
		if reply, err := store.Conn.RequestWithContext(t.Context(), subject, nil); err != nil || reply.Header.Get(requests.NodeHeader) != node {
			t.Errorf("%s: %v", node, err)
		}
	}
}
