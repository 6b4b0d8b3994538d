package assign_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
)

func at(seconds int) time.Time { return time.Date(2026, 1, 31, 12, 0, seconds, 0, time.UTC) }

const sampleManifest = "muster:\n  resources: []\n"

func documentOf(t *testing.T, a model.Assignment) []byte {
	t.Helper()
	a.Protocol, a.Name = model.ProtocolAssignment, "m"
	if a.Digest == "" {
		a.Digest = model.DigestOf([]byte(a.Manifest))
	}
	value, err := model.EncodeAssignment(a)
	if err != nil {
		t.Fatal(err)
	}

	return value
}

// TestRevisions: the changes of each revision against the one before, and whether it repeats an earlier one.
func TestRevisions(t *testing.T) {
	t.Parallel()
	bundle := model.DigestOf([]byte("bundle"))
	var all assign.Revisions
	for i, c := range []struct {
		key   string
		entry model.Entry
		want  string
	}{
		{"node.a.m", model.Entry{Value: []byte(sampleManifest)}, "assigned - "},
		{"node.b.m", model.Entry{Value: []byte(sampleManifest)}, "assigned - "},
		{"node.a.m", model.Entry{Value: []byte(sampleManifest + "# one\n")}, "assigned +1 -0 "},
		{"node.a.m", model.Entry{Value: []byte(sampleManifest + "# one\n")}, "assigned +0 -0 unchanged"},
		{"node.a.m", model.Entry{Value: []byte(sampleManifest)}, "assigned +0 -1 the same as revision 1"},
		{"node.a.m", model.Entry{Deleted: true}, "removed - "},
		{"node.a.m", model.Entry{Value: []byte(sampleManifest)}, "assigned +0 -0 the same as revision 5"},
		{"node.a.m", model.Entry{Refused: "headers"}, "assigned - cannot be used: headers"},
		{"node.a.m", model.Entry{Value: documentOf(t, model.Assignment{Noop: true, Manifest: sampleManifest})}, "assigned +1 -0 noop"},
		{"node.a.m", model.Entry{Value: documentOf(t, model.Assignment{Bundle: bundle, Digest: bundle})}, "assigned - bundle"},
		{"node.a.m", model.Entry{Value: documentOf(t, model.Assignment{Bundle: bundle, Digest: bundle, Issued: at(9)})}, "assigned - unchanged, bundle"},
		{"node.a.m", model.Entry{Value: []byte(sampleManifest)}, "assigned - the same as revision 7"},
		{"node.a.m", model.Entry{Value: []byte("protocol: nonsense\n")}, "assigned +2 -2 "},
	} {
		c.entry.Key, c.entry.Revision = c.key, uint64(i+1)
		r := all.Add(t.Context(), c.entry)
		if got := fmt.Sprint(r.Change(), " ", r.Lines, " ", r.Describe()); got != c.want || r.Value != nil {
			t.Errorf("revision %d: %q, want %q", i+1, got, c.want)
		}
	}
}

func report(kind string, outcome model.Outcome, seconds int, data any) model.Report {
	text, _ := json.Marshal(data)
	types := map[string]string{model.KindRun: model.ProtocolRun, model.KindTransaction: model.ProtocolTransaction, model.KindNode: model.ProtocolNode, model.KindEnsure: model.ProtocolEnsureResponse, model.KindHealth: model.ProtocolHealth}

	return model.Report{Node: "a", Kind: kind, Outcome: outcome, Time: at(seconds), Type: types[kind], Manifest: "node.a.m", Revision: 3, Cause: model.CauseSchedule, Data: text}
}

// TestEvents: in the order of their times, stable runs that follow each other as one.
func TestEvents(t *testing.T) {
	t.Parallel()
	stable := func(seconds int, revision uint64) model.Report {
		r := report(model.KindRun, model.OutcomeStable, seconds, model.Run{})
		r.Revision = revision
		return r
	}
	var all []assign.NodeEvent
	for _, r := range []model.Report{
		stable(1, 3), stable(3, 3), stable(5, 3), stable(9, 4), stable(11, 4),
		report(model.KindRun, model.OutcomeChanged, 4, model.Run{Counts: model.Counts{Total: 1, Changed: 1}}),
		report(model.KindTransaction, model.OutcomeChanged, 6, model.Transaction{Type: "file", Name: "/a", Changed: true}),
		report(model.KindTransaction, model.OutcomeChanged, 6, model.Transaction{Type: "file", Name: "/b", Changed: true, Drift: &model.Repair{Latency: time.Millisecond}}),
		report(model.KindNode, "started", 0, model.NodeState{Event: model.NodeStarted, Version: "1"}),
		report(model.KindHealth, "critical", 7, model.HealthReport{}),
		report(model.KindEnsure, model.OutcomeChanged, 8, model.EnsureResponse{Phase: model.EnsureDone}),
		report("unknown", "x", 8, nil),
	} {
		if e, ok := assign.OfReport(r); ok {
			all = append(all, e)
		}
	}
	all = append(all, assign.OfRevision(assign.Revision{Entry: model.Entry{Key: "node.a.m", Revision: 4, Time: at(10)}}))
	var got []string
	for _, e := range assign.SortEvents(all) {
		got = append(got, fmt.Sprint(e.At.Second(), " ", e.Kind, " ", e.Outcome, " ", e.Again))
	}
	want := "0 agent started 0\n1 run stable 1\n4 run changed 0\n5 run stable 0\n6 drift changed 0\n7 health critical 0\n8 request changed 0\n9 run stable 0\n10 assigned  0\n11 run stable 0"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// TestRetry: a retry run is marked.
func TestRetry(t *testing.T) {
	t.Parallel()
	for _, want := range []bool{true, false} {
		e, ok := assign.OfReport(report(model.KindRun, model.OutcomeFailed, 1, model.Run{Retry: want}))
		if !ok || e.Retry != want || strings.Contains(e.Details, ", tried again") != want {
			t.Errorf("%t: %+v", want, e)
		}
	}
}

// TestLatest keeps the latest of many, in whatever order they come; stable runs that follow each other
// stay one, with their number.
func TestLatest(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	l := assign.LatestEvents{Most: 3}
	for _, i := range []int{1, 0, 2, 3, 4, 5, 7, 6, 8} {
		l.Add(assign.NodeEvent{At: at(10 * i), Kind: assign.KindDrift})
	}
	var got []string
	for _, e := range l.Sorted() {
		got = append(got, fmt.Sprint(e.At.Unix()))
	}
	if want := "60, 70, 80"; strings.Join(got, ", ") != want || l.Dropped != 6 {
		t.Errorf("got %q, %d dropped, want %q", strings.Join(got, ", "), l.Dropped, want)
	}
	quiet := assign.LatestEvents{Most: 3}
	for i := range 100 {
		quiet.Add(assign.NodeEvent{At: at(i), Kind: assign.KindRun, About: "m", Outcome: model.OutcomeStable})
	}
	if all := quiet.Sorted(); len(all) != 1 || all[0].Again != 99 || !all[0].Until.Equal(at(99)) || quiet.Dropped != 0 {
		t.Errorf("got %+v, %d dropped", all, quiet.Dropped)
	}
}

// TestFutureReportsDisplaceNothing: a node reports any number of events at times that are to come. What operators
// did is there all the same; stable runs before and after an assignment are two.
func TestFutureReportsDisplaceNothing(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	node := assign.LatestEvents{Most: 3}
	assigned := assign.NodeEvent{At: at(10), Kind: assign.KindAssigned, About: "m"}
	for i := range 20 {
		node.Add(assign.NodeEvent{At: at(1000 + i), Kind: assign.KindDrift})
	}
	if all := node.Sorted(assigned); len(all) != 4 || all[0].Kind != assign.KindAssigned || node.Dropped != 17 {
		t.Errorf("got %+v, %d dropped", all, node.Dropped)
	}
	runs := assign.LatestEvents{Most: 3}
	for _, i := range []int{9, 11} {
		runs.Add(assign.NodeEvent{At: at(i), Kind: assign.KindRun, About: "m", Outcome: model.OutcomeStable})
	}
	if all := runs.Sorted(assigned); len(all) != 3 || all[1].Kind != assign.KindAssigned {
		t.Errorf("got %+v", all)
	}
}

// TestControl: values of operators, valid or not.
func TestControl(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, value string
		deleted    bool
		want       string
	}{
		{"node.a.pause", `{"protocol":"io.muster.v1.pause","by":"ann","reason":"disk"}`, false, "paused by ann: disk"},
		{"node.a.pause", `{"protocol":"io.muster.v1.pause"}`, false, "paused "},
		{"group.g.pause", "", true, "resumed "},
		{"node.a.labels", `{"protocol":"io.muster.v1.labels","labels":{"b":"2","a":"1"}}`, false, "labels a=1, b=2"},
		{"node.a.labels", `{"protocol":"io.muster.v1.labels","labels":{}}`, false, "labels no labels"},
		{"node.a.labels", "", true, "labels removed"},
		{"node.a.groups", `{"protocol":"io.muster.v1.groups","groups":["g"]}`, false, "groups g"},
		{"node.a.groups", `{"protocol":"x"}`, false, "groups not valid: "},
		{"node.a.other", "", false, "none"},
	} {
		e, ok := assign.OfControl(model.Entry{Key: c.key, Value: []byte(c.value), Deleted: c.deleted})
		got := fmt.Sprint(e.Kind, " ", e.Details)
		if !ok {
			got = "none"
		}
		if got != c.want && !(strings.HasSuffix(c.want, ": ") && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s %s: %q, want %q", c.key, c.value, got, c.want)
		}
	}
}

// TestRollout counts nodes, not runs, and no revision of another bucket.
func TestRollout(t *testing.T) {
	t.Parallel()
	revisions := []assign.Revision{{Entry: model.Entry{Key: "node.a.m", Revision: 3, Digest: "d"}}, {Entry: model.Entry{Key: "node.a.m", Revision: 4, Digest: "e"}}}
	count := assign.NewRollout(revisions)
	for _, c := range []struct {
		node     string
		revision uint64
		digest   string
		outcome  model.Outcome
		seconds  int
	}{
		{"a", 3, "d", model.OutcomeFailed, 1}, {"a", 3, "d", model.OutcomeChanged, 2}, {"b", 3, "d", model.OutcomeStable, 3}, {"b", 3, "d", model.OutcomeFailed, 9},
		{"c", 3, "other", model.OutcomeStable, 4}, {"d", 4, "e", model.OutcomeRefused, 5}, {"e", 9, "e", model.OutcomeStable, 5},
	} {
		r := report(model.KindRun, c.outcome, c.seconds, nil)
		r.Node, r.Revision, r.Digest = c.node, c.revision, c.digest
		count.Add(r)
	}
	states := []model.Node{
		{NodeState: model.NodeState{Node: "a", Manifests: map[string]model.ManifestState{"node.a.m": {Revision: 3, Digest: "d"}}}},
		{NodeState: model.NodeState{Node: "b", Manifests: map[string]model.ManifestState{"node.a.m": {Revision: 3, Digest: "of another bucket"}}}},
		{NodeState: model.NodeState{Node: "c", Manifests: map[string]model.ManifestState{"node.a.m": {Revision: 4, Digest: "e", Ran: &model.RanRevision{Revision: 3, Digest: "d"}}}}},
	}
	if full := count.Finish(states, 2); full != 0 {
		t.Errorf("%d are full", full)
	}
	if got, want := revisions[0].Ran, (assign.Ran{Nodes: 2, Failed: 1, Now: 2, First: at(1), Last: at(3)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := revisions[1].Ran, (assign.Ran{Rejected: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if full := assign.NewRollout(nil); full.Finish(nil, 1) != 0 {
		t.Error("nothing is full")
	}
	again := assign.NewRollout(nil)
	again.Add(report(model.KindRun, model.OutcomeStable, 1, nil))
	if again.Finish(nil, 1) != 1 {
		t.Error("one node fills its reports")
	}
}

// TestSince omits earlier events and all but the last.
func TestSince(t *testing.T) {
	t.Parallel()
	all := []time.Time{at(1), at(2), at(3), at(4)}
	self := func(t time.Time) time.Time { return t }
	for _, c := range []struct {
		since            time.Time
		last, left, more int
	}{{time.Time{}, 0, 4, 0}, {at(2), 0, 3, 0}, {at(2), 2, 2, 1}, {time.Time{}, 9, 4, 0}, {at(9), 1, 0, 0}} {
		got, more := assign.Since(all, self, c.since, c.last)
		if len(got) != c.left || more != c.more || c.left > 0 && !got[len(got)-1].Equal(at(4)) {
			t.Errorf("%+v: %v, %d", c, got, more)
		}
	}
}

// TestRolloutCountsRejectionsOfStates tests that a rejection counts without a report: nodes limit their reports of
// rejections, and streams drop old reports. A rejection in another bucket does not count.
func TestRolloutCountsRejectionsOfStates(t *testing.T) {
	t.Parallel()
	const key = "group.web.m"
	revisions := []assign.Revision{{Entry: model.Entry{Key: key, Revision: 4, Digest: "e", Time: at(1)}}}
	count := assign.NewRollout(revisions)
	reported := report(model.KindRun, model.OutcomeRefused, 5, nil)
	reported.Node, reported.Manifest, reported.Revision, reported.Digest = "a", key, 4, "e"
	count.Add(reported)
	rejects := func(node string, change func(*model.ManifestState)) model.Node {
		m := model.ManifestState{Revision: 3, Digest: "d", Seen: 4, SeenAt: at(1), Late: model.LateRejected + "not signed"}
		change(&m)
		return model.Node{NodeState: model.NodeState{Node: node, Manifests: map[string]model.ManifestState{key: m}}}
	}
	count.Finish([]model.Node{
		rejects("a", func(*model.ManifestState) {}),
		rejects("b", func(*model.ManifestState) {}),
		rejects("c", func(m *model.ManifestState) { m.SeenAt = time.Time{} }),
		rejects("other bucket", func(m *model.ManifestState) { m.SeenAt = at(2) }),
		rejects("other revision", func(m *model.ManifestState) { m.Seen = 5 }),
		rejects("waits", func(m *model.ManifestState) { m.Late = "the bundle is being downloaded" }),
	}, 0)
	if got, want := revisions[0].Ran, (assign.Ran{Rejected: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
