package view_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// TestWhatIsKeptStaysWhole: an event, a run, and a run without a summary have all reported fields, with times
// in UTC.
func TestWhatIsKeptStaysWhole(t *testing.T) {
	t.Parallel()
	l := view.New(view.Options{Keep: time.Hour, Events: 100, Runs: 100})
	stored := time.Date(2026, 11, 26, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	report := func(kind, protocol string, outcome model.Outcome, document any) model.Report {
		data, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		return model.Report{
			ID: ksuid.New().String(), Type: protocol, Node: "web1", Kind: kind, Outcome: outcome, Time: time.Now(), RunID: "r1", Manifest: "group.web.motd", Revision: 7,
			Cause: model.CauseSchedule, CorrelationID: "q1", Data: data,
		}
	}
	counts := model.Counts{Total: 9, Failed: 1, HealthChecks: model.HealthCounts{Critical: 1}}
	part := report(model.KindTransaction, model.ProtocolTransaction, model.OutcomeFailed, model.Transaction{Type: "file", Name: "/etc/motd", Errors: []string{"no space"}})
	run := report(model.KindRun, model.ProtocolRun, model.OutcomeFailed, model.Run{Started: stored, Duration: time.Second, Counts: counts, Errors: []string{"file#/etc/motd: no space"}})
	answer := report(model.KindEnsure, model.ProtocolEnsureResponse, model.OutcomeChanged, model.EnsureResponse{Error: "too late", Sender: &model.Sender{By: "ada", Nodes: 3}})
	l.Add(model.StoredReports{Sequence: 5, Stored: stored, Reports: []model.Report{part}})
	partial := []view.RunRow{{RunID: "r1", Node: "web1", Manifest: "group.web.motd", Cause: model.CauseSchedule, Started: stored.UTC()}}
	if got := l.Runs(view.EventQuery{}); !reflect.DeepEqual(got, partial) {
		t.Errorf("without the summary %+v, want %+v", got, partial)
	}
	l.Add(model.StoredReports{Sequence: 6, Stored: stored, Reports: []model.Report{run, answer}})

	event := func(seq uint64, r model.Report) view.Event {
		return view.Event{Seq: seq, ID: r.ID, Time: stored.UTC(), Node: "web1", Kind: r.Kind, Outcome: r.Outcome, Cause: r.Cause, Manifest: r.Manifest, RunID: "r1", CorrelationID: "q1"}
	}
	events := []view.Event{event(6, answer), event(6, run), event(5, part)}
	events[0].By, events[0].Resource, events[2].Resource = "ada", "ensure", "file#/etc/motd"
	page := l.Events(view.EventQuery{})
	got, more := page.Events, page.More
	if len(got) != len(events) || more {
		t.Fatalf("%+v, more %t", got, more)
	}
	for i, want := range events {
		if want.Text = got[i].Text; want.Text == "" {
			t.Errorf("no text: %+v", got[i])
		}
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("%+v, want %+v", got[i], want)
		}
	}
	runs := []view.RunRow{{
		RunID: "r1", Node: "web1", Manifest: "group.web.motd", Revision: 7, Cause: model.CauseSchedule, Outcome: model.OutcomeFailed, Started: stored.UTC(), Duration: time.Second,
		Counts: counts, Error: "file#/etc/motd: no space",
	}}
	if got := l.Runs(view.EventQuery{}); !reflect.DeepEqual(got, runs) {
		t.Errorf("%+v, want %+v", got, runs)
	}
	l.SetNode(model.Node{NodeState: model.NodeState{Node: "web1"}})
	if d, _ := l.Node("web1"); !reflect.DeepEqual(d.Runs, runs) || !reflect.DeepEqual(d.Events, got) {
		t.Errorf("of the node %+v, %+v", d.Runs, d.Events)
	}
}

// TestEventsOfATime tests that a time range selects events by when the server stored them.
func TestEventsOfATime(t *testing.T) {
	t.Parallel()
	l := view.New(view.Options{Keep: 24 * time.Hour, Events: 100, Runs: 100})
	start := time.Now().Add(-time.Hour).Truncate(time.Second)
	for i := range 5 {
		l.Add(model.StoredReports{Sequence: uint64(i + 1), Stored: start.Add(time.Duration(i) * time.Minute), Reports: []model.Report{{
			ID: ksuid.New().String(), Type: model.ProtocolRun, Node: "web1", Kind: model.KindRun, Outcome: model.OutcomeStable, RunID: ksuid.New().String(), Data: []byte(`{}`),
		}}})
	}
	for _, c := range []struct {
		since, until time.Time
		want         []uint64
	}{
		{time.Time{}, time.Time{}, []uint64{5, 4, 3, 2, 1}},
		{start.Add(time.Minute), time.Time{}, []uint64{5, 4, 3, 2}},
		{time.Time{}, start.Add(2 * time.Minute), []uint64{2, 1}},
		{start.Add(time.Minute), start.Add(3 * time.Minute), []uint64{3, 2}},
		{start.Add(time.Hour), time.Time{}, nil},
	} {
		var got []uint64
		for _, e := range l.Events(view.EventQuery{Since: c.since, Until: c.until}).Events {
			got = append(got, e.Seq)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("from %s until %s: %v, want %v", c.since, c.until, got, c.want)
		}
	}
}
