package fleetcmd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/simulate"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/fleetsim"
	"github.com/musterfleet/muster/testing/kvtest"
)

// web is the key that pauses the web servers, 60% of the nodes.
const web = "group.sim-web.pause"

// write writes a control key; empty deletes it.
func write(t *testing.T, store *kvtest.Store, key, value string) {
	t.Helper()
	var err error
	if bucket := kvstore.NewControl(store.Store); value == "" {
		_, err = bucket.Delete(t.Context(), key, nil)
	} else {
		_, err = bucket.Put(t.Context(), key, []byte(value))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pausing is a pause until a time, zero for one without an end.
func pausing(until time.Time) string {
	text, _ := json.Marshal(model.Pause{Protocol: model.ProtocolPause, Until: until, By: "ann", Reason: "disk"}) // plain fields always encode

	return string(text)
}

// await waits until so many nodes are in a state.
func await(t *testing.T, store *kvtest.Store, what string, count int, is func(n model.Node) bool) {
	t.Helper()
	kvtest.Eventually(t, what, func() (bool, string) {
		all, err := store.Nodes(t.Context())
		found := 0
		for _, n := range all {
			if is(n) {
				found++
			}
		}
		return err == nil && found == count, fmt.Sprintf("%d of %d, %v", found, len(all), err)
	})
}

// pausedBy reports whether a node is paused by a key, or with none by nothing.
func pausedBy(key string) func(model.Node) bool {
	return func(n model.Node) bool {
		return key == "" && n.Paused == nil || n.Paused != nil && n.Paused.From == key
	}
}

// ran reports whether a node has run a revision; has, whether it has the revision and has not run it.
func ran(revision uint64) func(model.Node) bool {
	return func(n model.Node) bool {
		s := n.Manifests["group.sim.site"]
		return s.Revision == revision && s.Outcome != ""
	}
}

func has(revision uint64) func(model.Node) bool {
	return func(n model.Node) bool {
		s := n.Manifests["group.sim.site"]
		return s.Revision == revision && s.Outcome == ""
	}
}

// asked returns the last answers to a request, by node.
func asked(t *testing.T, store *kvtest.Store, request string, count int) map[string]model.EnsureResponse {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer stop()
	last := map[string]model.EnsureResponse{}
	for reply, err := range kvtest.Ask(ctx, requests.New(store.Store), store.Names.Request(kvstore.VerbEnsure, model.GroupFamily("sim-web")), []byte(request)) {
		var answer model.EnsureResponse
		if err == nil {
			err = json.Unmarshal(reply.Data, &answer)
		}
		if err != nil {
			t.Fatal(err)
		}
		if answer.Phase.Final() {
			last[reply.Node] = answer
		}
		if len(last) == count {
			break
		}
	}

	return last
}

// TestPausedNodesOnlyObserve: they start no runs and refuse requests until the pause ends, then run the
// missed revisions.
func TestPausedNodesOnlyObserve(t *testing.T) {
	t.Parallel()
	const count, paused = 20, 12
	srv, store := kvtest.New(t)
	play(t, srv, simulate.Plan{Nodes: count, Scenario: "stable"})
	first := put(t, store, site("one"))
	await(t, store, "all have run it", count, ran(first))
	write(t, store, web, pausing(time.Time{}))
	await(t, store, "the web servers are paused", paused, pausedBy(web))
	second := put(t, store, site("two"))
	await(t, store, "the others have run the next one", count-paused, ran(second))
	await(t, store, "the web servers have it", paused, has(second))
	const request = `{"protocol":"io.choria.ccm.v1.resource.ensure.request","id":%q,"type":"file","properties":{"name":"/x"},"noop":%t}`
	for node, answer := range asked(t, store, fmt.Sprintf(request, "one", false), paused) {
		if answer.Phase != model.EnsureFailed || !strings.Contains(answer.Error, "refused, the node changes nothing now: paused by ann: disk") {
			t.Errorf("%s answers %+v", node, answer)
		}
	}
	// Their requests follow the missed assignments.
	for node, answer := range asked(t, store, fmt.Sprintf(request, "two", true), paused) {
		if answer.Phase != model.EnsureDone {
			t.Errorf("%s answers %+v in noop", node, answer)
		}
	}
	await(t, store, "the web servers still have it only", paused, has(second))
	write(t, store, web, "")
	await(t, store, "all have run the next one", count, ran(second))
	await(t, store, "none is paused", count, pausedBy(""))
	// What a node has run may be in its state before the report of it is stored.
	ctx, stop := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer stop()
	runs, total := map[model.Cause]int{}, 0
	for r, err := range store.Reports(ctx, model.ReportRange{Kind: model.KindRun, Follow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Revision == second {
			runs[r.Cause]++
			total++
		}
		if total == count {
			break
		}
	}
	if runs[model.CauseManifest] != count {
		t.Errorf("the second revision was run for %v", runs)
	}
}

// TestAPauseEndsByItself, also a pause that is older than the nodes.
func TestAPauseEndsByItself(t *testing.T) {
	t.Parallel()
	const count = 5
	srv, store := kvtest.New(t)
	write(t, store, "group.all.pause", pausing(time.Time{}))
	revision := put(t, store, site("one"))
	play(t, srv, simulate.Plan{Nodes: count, Scenario: "stable"})
	await(t, store, "all are paused", count, pausedBy("group.all.pause"))
	await(t, store, "none has run it", count, has(revision))
	write(t, store, "group.all.pause", pausing(time.Now().Add(time.Second)))
	await(t, store, "all have run it", count, ran(revision))
	await(t, store, "none is paused", count, pausedBy(""))
}

// TestDriftOfPausedNodes is reported, and repaired after the pause; no resource fails meanwhile.
func TestDriftOfPausedNodes(t *testing.T) {
	t.Parallel()
	const count = 10
	srv, store := kvtest.New(t)
	revision := put(t, store, site("one"))
	fleetsim.Simulate(t, connect.Options{Servers: []string{srv.URL()}}, fleetcmd.SimulateOptions{
		Plan: simulate.Plan{Nodes: count, Scenario: "mixed", RunTime: time.Millisecond}, Rate: 400,
	})
	there := func(n model.Node) bool { return !n.Silent && n.Node != "" }
	write(t, store, "group.sim.pause", pausing(time.Time{}))
	kvtest.Eventually(t, "all that are there are paused", func() (bool, string) {
		all, err := store.Nodes(t.Context())
		left := []string{}
		for _, n := range all {
			if there(n) && n.Paused == nil {
				left = append(left, n.Node)
			}
		}
		return err == nil && len(all) == count && len(left) == 0, fmt.Sprint(left, err)
	})
	drifted := map[string]bool{}
	observed, repaired := model.Drifted{}, model.Drifted{}
	ctx, stop := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer stop()
	for r, err := range store.Reports(ctx, model.ReportRange{Kind: model.KindRun, Follow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		var run model.Run
		if err := json.Unmarshal(r.Data, &run); err != nil {
			t.Fatal(err)
		}
		switch {
		case run.Revision != revision:
		case run.Noop && run.Cause == model.CauseDrift:
			// One of them fails, which repairs nothing afterwards.
			if drifted[r.Node] = true; len(drifted) == 2 && observed.Detected == 0 {
				observed = run.Drift
				write(t, store, "group.sim.pause", "")
			}
		case !run.Noop && drifted[r.Node] && run.Cause == model.CauseSchedule && run.Drift.Repaired > 0:
			repaired = run.Drift
		}
		if run.Noop && run.Counts.Failed > 0 {
			t.Errorf("%s: while it observes %+v", r.Node, run)
		}
		if repaired.Repaired > 0 {
			break
		}
	}
	if observed.Detected != 1 || observed.Repaired != 0 || repaired.Detected != repaired.Repaired {
		t.Errorf("observed is %+v, repaired %+v", observed, repaired)
	}
}

// TestWhatOperatorsWriteIsShown: labels, groups with their assignments, and invalid values.
func TestWhatOperatorsWriteIsShown(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	play(t, srv, simulate.Plan{Nodes: 5, Scenario: "stable"})
	if _, err := store.Put(t.Context(), "group.canary.more", site("one")); err != nil {
		t.Fatal(err)
	}
	write(t, store, "node.sim-0001.labels", `{"protocol": "io.muster.v1.labels", "labels": {"rack": "z9"}}`)
	write(t, store, "node.sim-0001.groups", `{"protocol": "io.muster.v1.groups", "groups": ["canary"]}`)
	write(t, store, "node.sim-0002.pause", `{"until": 7}`)
	one := func(n model.Node) bool {
		return n.Labels["rack"] == "z9" && n.Labels["role"] == "web" && strings.Join(n.Groups, " ") == "canary sim sim-web" && n.Manifests["group.canary.more"].Outcome == model.OutcomeChanged
	}
	two := func(n model.Node) bool {
		return n.Node == "sim-0002" && n.Paused == nil && strings.HasPrefix(n.RejectedControl["node.sim-0002.pause"], "invalid control document")
	}
	await(t, store, "the labels, the group and its manifest are there", 1, one)
	await(t, store, "what is not valid is said", 1, two)
	ctx, stop := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer stop()
	seen := map[string]bool{}
	for reply, err := range kvtest.Ask(ctx, requests.New(store.Store), store.Names.Request(kvstore.VerbPing, "group.canary"), nil) {
		if err != nil {
			t.Fatal(err)
		}
		seen[reply.Node] = true
		break
	}
	if !seen["sim-0001"] {
		t.Errorf("as the group answers %v", seen)
	}
	write(t, store, "node.sim-0001.groups", `{"protocol": "io.muster.v1.groups", "groups": []}`)
	write(t, store, "node.sim-0001.labels", "")
	await(t, store, "the node is as it was", 1, func(n model.Node) bool {
		_, more := n.Manifests["group.canary.more"]
		return n.Node == "sim-0001" && n.Labels["rack"] != "z9" && len(n.Groups) == 2 && !more
	})
}

// TestAFleetWithoutControl, of an earlier version, is played as well.
func TestAFleetWithoutControl(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	if err := kvtest.Manager(t, srv).DeleteStream(kvstore.KVStream(store.Names.Control)); err != nil {
		t.Fatal(err)
	}
	revision := put(t, store, site("one"))
	play(t, srv, simulate.Plan{Nodes: 3, Scenario: "stable"})
	await(t, store, "all have run it", 3, ran(revision))
}
