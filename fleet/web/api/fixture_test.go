package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// at is when everything happened.
var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// hostile is what a node may call itself.
const hostile = `<script>alert("1")</script>`

// fixture is a fleet of one node. It records the requests.
type fixture struct {
	mu    sync.Mutex
	asked []any
	// feeds are the results of Follow, in turn.
	feeds chan feed
	// fails is what sources return.
	fails error
}

// feed is what a reader gets.
type feed struct {
	events    chan view.Event
	query     view.EventQuery
	cancelled chan struct{}
}

func newFixture() *fixture { return &fixture{feeds: make(chan feed, 100)} }

func (f *fixture) note(q any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, q)
}

// last returns the last request.
func (f *fixture) last() any {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 {
		return nil
	}

	return f.asked[len(f.asked)-1]
}

func (f *fixture) Progress() view.Progress {
	return view.Progress{Nodes: true, LastRuns: true, Problems: []string{"NATS cannot be reached"}}
}

func (f *fixture) Overview() view.Overview {
	return view.Overview{Progress: f.Progress(), Summary: view.Summary{At: at, Total: 1, States: []view.State{{State: fleet.StatusOK, Members: view.Members{Nodes: 1, First: []string{"web01"}}}}}}
}

func (f *fixture) Nodes(q view.NodeQuery) (view.NodePage, error) {
	f.note(q)
	if q.On != "" {
		if _, err := targets.Compile(q.On); err != nil {
			return view.NodePage{}, err
		}
	}

	return view.NodePage{Progress: f.Progress(), Known: 1, Matching: 1, Rows: []view.NodeRow{{Node: "web01", Host: hostile, State: fleet.StatusOK}}}, nil
}

func (f *fixture) Node(name string) (view.NodeDetail, bool) {
	return view.NodeDetail{Node: view.Node{Node: model.Node{NodeState: model.NodeState{Node: name}}, State: fleet.StatusOK}}, name == "web01"
}

func (f *fixture) Manifests() []view.ManifestRow { return nil }

func (f *fixture) Manifest(q view.ManifestQuery) (view.ManifestDetail, bool) {
	f.note(q)

	return view.ManifestDetail{ManifestRow: view.ManifestRow{Manifest: view.Manifest{Name: q.Name}}}, q.Name == "motd"
}

func (f *fixture) Runs(q view.EventQuery) []view.RunRow {
	f.note(q)

	return []view.RunRow{{RunID: "r1", Node: "web01", Outcome: model.OutcomeFailed}}
}

func (f *fixture) Events(q view.EventQuery) view.EventPage {
	f.note(q)

	return view.EventPage{Events: []view.Event{event(7)}}
}

func (f *fixture) Requests() []view.RequestRow { return []view.RequestRow{{ID: "q1"}} }

func (f *fixture) Request(id string, run bool) (view.RequestDetail, bool) {
	if run {
		return view.RequestDetail{RequestRow: view.RequestRow{ID: id, Resource: "run"}}, true
	}

	return view.RequestDetail{RequestRow: view.RequestRow{ID: id, Nodes: 2, Answers: 1}, Missing: []string{"web02"}, Others: []string{}}, id == "q1 by anna"
}

func (f *fixture) Follow(q view.EventQuery) (<-chan view.Event, func()) {
	one := feed{make(chan view.Event, 100), q, make(chan struct{})}
	f.feeds <- one

	return one.events, sync.OnceFunc(func() { close(one.cancelled) })
}

func (f *fixture) Run(_ context.Context, node, id string) (view.RunDetail, error) {
	if f.fails == nil && id != "r1" {
		return view.RunDetail{}, fmt.Errorf("run %s: %w", id, model.ErrNotFound)
	}

	return view.RunDetail{Node: node, Run: &model.Run{RunID: id}}, f.fails
}

func (f *fixture) Answers(_ context.Context, r view.RequestDetail) (view.Answers, error) {
	code := 3

	return view.Answers{Answers: []view.Answer{{Node: "web01", Outcome: model.OutcomeFailed, ExitCode: &code, Stdout: "=1+1", Stderr: "a\"b\nc", Text: r.ID, Time: at}}}, f.fails
}

func (f *fixture) Facts(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(`{"os": "linux"}`), f.fails
}

func (f *fixture) History(_ context.Context, key string) ([]model.Entry, error) {
	return []model.Entry{{Key: key, Revision: 3, Value: []byte("secret"), By: "anna@desk"}}, f.fails
}

func (f *fixture) Assigned(context.Context) ([]model.Entry, bool, error) {
	return []model.Entry{
		{Key: "group.web.app", Revision: 9, Deleted: true, Time: at, By: "bob@desk"},
		{Key: "stray", Revision: 8, Invalid: true, Time: at},
		{Key: "group.web.app", Revision: 3, Time: at, By: hostile},
	}, true, f.fails
}

func (f *fixture) Control(context.Context) ([]model.Entry, bool, error) {
	return []model.Entry{
		{Key: "node.web01.pause", Revision: 9, Deleted: true, Time: at, By: "bob (dashboard)"},
		{Key: "group.db.labels", Revision: 8, Value: []byte(`{"protocol":"io.muster.v1.labels","labels":{"rack":"a3"}}`), Time: at, By: hostile},
	}, true, f.fails
}

func (f *fixture) Registrations(context.Context) ([]registration.Registration, error) {
	return []registration.Registration{{Cluster: "prod", Service: "shop"}, {Cluster: "test", Service: "shop"}}, f.fails
}

func event(seq uint64) view.Event {
	return view.Event{Seq: seq, Time: at, Node: "web01", Kind: model.KindRun, Outcome: model.OutcomeChanged, Text: "line\nof <text>"}
}
