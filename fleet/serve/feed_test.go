package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"
	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/webhook"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// follow runs a feed until the test ends.
func follow(t *testing.T, store *kvtest.Store) *view.Fleet {
	t.Helper()
	f := view.New(view.Options{Facts: store.Facts})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := newFeed(storeOf(store), f, 24*time.Hour, slog.New(slog.DiscardHandler)).run(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })

	return f
}

// TestWatchShowsChanges tests that Watch shows the fleet, shows it again after a change, and returns the error of show.
func TestWatchShowsChanges(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	put(t, store, "web01", 1)
	isFull := errors.New("full")
	var totals []int
	err := Watch(t.Context(), storeOf(store), "1.0.0", slog.New(slog.DiscardHandler), func(s view.Summary) error {
		if totals = append(totals, s.Total); len(totals) == 1 {
			put(t, store, "web02", 1)
		}
		if s.Total == 2 {
			return isFull
		}
		return nil
	})
	if !errors.Is(err, isFull) || totals[0] != 1 {
		t.Errorf("%v, after %v", err, totals)
	}
}

// deniedAssignments returns an error instead of the assignments.
type deniedAssignments struct{ Assignments }

func (deniedAssignments) List(context.Context, ...string) ([]model.Entry, error) {
	return nil, model.ErrNotPermitted
}

// TestWatchEnds tests that Watch returns the error of the first list, and the error of a closed connection.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer cancel()
	log := slog.New(slog.DiscardHandler)
	denied := storeOf(store)
	denied.Assignments = deniedAssignments{denied.Assignments}
	if err := Watch(ctx, denied, "1.0.0", log, func(view.Summary) error { return nil }); !errors.Is(err, model.ErrNotPermitted) {
		t.Errorf("without permission: %v", err)
	}
	err := Watch(ctx, storeOf(store), "1.0.0", log, func(view.Summary) error {
		store.Conn.Close()
		return nil
	})
	if !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("after the connection closed: %v", err)
	}
}

// report publishes the run of a node.
func report(t *testing.T, store *kvtest.Store, node, id string) {
	t.Helper()
	r := kvtest.Outgoing(node, model.KindRun, model.OutcomeStable, 1)
	r.RunID, r.Manifest = id, "group.all.motd"
	if err := kvtest.Publish(t.Context(), store, r); err != nil {
		t.Fatal(err)
	}
}

// put stores the state of a node.
func put(t *testing.T, store *kvtest.Store, node string, revision uint64) {
	t.Helper()
	state := model.NodeState{Node: node, Manifests: map[string]model.ManifestState{"group.all.motd": {Revision: revision, Outcome: model.OutcomeStable}}}
	if err := store.PutState(t.Context(), state, time.Hour); err != nil {
		t.Fatal(err)
	}
}

// known describes the known data.
func known(f *view.Fleet) string {
	o := f.Overview()
	var runs []string
	for _, r := range f.Runs(view.EventQuery{}) {
		runs = append(runs, r.RunID)
	}
	slices.Sort(runs)
	var states []string
	for _, s := range o.States {
		states = append(states, fmt.Sprint(s.Nodes, " ", s.State))
	}

	return fmt.Sprint(states, " ", runs, " ", o.Progress.Nodes, o.Progress.LastRuns, o.Progress.History)
}

func is(t *testing.T, f *view.Fleet, want string) {
	t.Helper()
	kvtest.Eventually(t, "the view is "+want, func() (bool, string) {
		got := known(f)
		return got == want, got + fmt.Sprint(f.Progress().Problems)
	})
}

// TestFeed: existing data, changes, and all data again after an outage of NATS. A server that starts later
// knows the same, also without permission to create consumers.
func TestFeed(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	revision, err := store.Put(t.Context(), "group.all.motd", []byte("muster: {resources: []}"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, store, "web01", revision)
	report(t, store, "web01", "r1")
	f := follow(t, store)
	is(t, f, "[1 ok] [r1] true true true")

	put(t, store, "web02", revision)
	report(t, store, "web02", "r2")
	is(t, f, "[2 ok] [r1 r2] true true true")
	if _, err := store.Put(t.Context(), "group.all.motd", []byte("muster: {resources: [], data: {}}")); err != nil {
		t.Fatal(err)
	}
	is(t, f, "[2 pending] [r1 r2] true true true")

	srv.Stop()
	kvtest.Eventually(t, "it says that NATS is away", func() (bool, string) {
		p := f.Progress().Problems
		return len(p) > 0 && strings.HasPrefix(p[0], "NATS cannot be reached since "), fmt.Sprint(p)
	})
	is(t, f, "[2 pending] [r1 r2] true true true")
	srv.Start(t)
	other := kvtest.Bind(t, srv)
	put(t, other, "web01", revision+1)
	report(t, other, "web01", "r3")
	if _, err := other.Delete(t.Context(), "group.all.motd", nil); err != nil {
		t.Fatal(err)
	}
	is(t, f, "[2 ok] [r1 r2 r3] true true true")
	kvtest.Eventually(t, "nothing is wrong any more", func() (bool, string) {
		p := f.Progress().Problems
		return len(p) == 0, fmt.Sprint(p)
	})
	is(t, follow(t, other), "[2 ok] [r1 r2 r3] true true true")
}

// TestOneProblemOfAnOutage: what cannot be read because NATS is away is no problem beside that, and is
// read again once NATS is back; what fails then is one.
func TestOneProblemOfAnOutage(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	view := view.New(view.Options{})
	feed := newFeed(storeOf(store), view, time.Hour, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() { feed.watchConnection(ctx) })
	reads, stopped, again := 0, make(chan struct{}), make(chan []string, 1)
	all.Go(func() {
		feed.persist(ctx, feed.to, "the end", func(ctx context.Context) error {
			switch reads++; reads {
			case 1:
				<-stopped
				return fmt.Errorf("read: %w", context.DeadlineExceeded)
			case 2:
				if err := store.Away(); err != nil {
					t.Errorf("it is read while NATS is away: %v", err)
				}
				again <- view.Progress().Problems
				return fmt.Errorf("read: %w", context.DeadlineExceeded)
			}
			<-ctx.Done()
			return ctx.Err()
		})
	})
	srv.Stop()
	is := func(what, prefix string) {
		t.Helper()
		kvtest.Eventually(t, what, func() (bool, string) {
			p := view.Progress().Problems
			return len(p) == 1 && strings.HasPrefix(p[0], prefix), fmt.Sprint(p)
		})
	}
	is("it says that NATS is away", "NATS cannot be reached since ")
	close(stopped)
	srv.Start(t)
	for _, p := range <-again {
		if !strings.HasPrefix(p, "NATS cannot be reached since ") {
			t.Errorf("a problem of the outage: %s", p)
		}
	}
	is("it says what cannot be read all the same", "the end cannot be read since ")
}

// TestAReadingThatAnOutageEnded is no problem once NATS is back, unless it fails again.
func TestAReadingThatAnOutageEnded(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	view := view.New(view.Options{})
	feed := newFeed(storeOf(store), view, time.Hour, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	reads, back, again := 0, make(chan struct{}), make(chan []string, 1)
	all.Go(func() {
		feed.persist(ctx, feed.to, "reports", func(ctx context.Context) error {
			if reads++; reads == 2 {
				again <- view.Progress().Problems
			}
			select {
			case <-back:
				return errors.New("the consumer was lost")
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	srv.Stop()
	srv.Start(t)
	kvtest.Eventually(t, "NATS is back", func() (bool, string) { return !store.Reconnected().IsZero() && store.Away() == nil, "" })
	close(back)
	if p := <-again; len(p) > 0 {
		t.Errorf("a problem of the outage: %q", p)
	}
	kvtest.Eventually(t, "it says what cannot be read all the same", func() (bool, string) {
		p := view.Progress().Problems
		return len(p) == 1 && strings.HasPrefix(p[0], "reports cannot be read since "), fmt.Sprint(p)
	})
}

// TestFeedOfAViewer: it needs no right to make consumers.
func TestFeedOfAViewer(t *testing.T) {
	t.Parallel()
	g := kvtest.ByConfig(t)
	put(t, g.Admin, "web01", 1)
	report(t, g.Admin, "web01", "r1")
	f := follow(t, kvtest.BindTo(t, g.Connect(t, kvtest.Viewer)))
	is(t, f, "[1 ok] [r1] true true true")
	report(t, g.Admin, "web01", "r2")
	is(t, f, "[1 ok] [r1 r2] true true true")
}

// TestThePastIsTooLong: pages with counts report unread history. The rest counts as current. The notice ends
// when the unread part is older than the shown period.
func TestThePastIsTooLong(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	for i := range 4 {
		report(t, store, fmt.Sprintf("web0%d", i), fmt.Sprintf("r%d", i))
	}
	for name, c := range map[string]struct {
		keep      time.Duration
		most      int
		events    int
		truncated bool
	}{
		"too long":       {time.Hour, 1, 2, true},
		"as long as may": {time.Hour, 1 << 20, 4, false},
		"all of it":      {time.Nanosecond, 1, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := view.New(view.Options{Keep: c.keep})
			feed := newFeed(storeOf(store), f, c.keep, slog.New(slog.DiscardHandler))
			feed.past.most, feed.past.block, feed.until = c.most, 2, 5 // none was read yet
			if err := feed.readHistory(t.Context()); err != nil {
				t.Fatal(err)
			}
			p := f.Progress()
			if !p.History || len(p.Problems) > 0 || len(p.Incomplete) > 0 != c.truncated || c.truncated && !strings.HasPrefix(p.Incomplete[0], "There are more reports than are read of the past: those before ") {
				t.Errorf("%+v", p)
			}
			if got := len(f.Events(view.EventQuery{}).Events); got != c.events {
				t.Errorf("%d events, want %d", got, c.events)
			}
		})
	}
}

// TestPrune: a node with an expired state disappears.
func TestPrune(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	f := view.New(view.Options{})
	put(t, store, "web01", 1)
	for _, name := range []string{"web01", "web02"} {
		f.SetNode(model.Node{NodeState: model.NodeState{Node: name}})
	}
	if err := newFeed(storeOf(store), f, time.Hour, slog.New(slog.DiscardHandler)).pruneNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for n := range f.All() {
		got = append(got, n.Node)
	}
	if !slices.Equal(got, []string{"web01"}) {
		t.Errorf("nodes %v", got)
	}
}

// TestAnotherStream: a recreated stream ends the view, also with more messages than before, and so does a
// stream that went back for good. A stream that cannot be read does not.
func TestAnotherStream(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	feed := newFeed(storeOf(store), view.New(view.Options{}), time.Hour, slog.New(slog.DiscardHandler))
	const stream = "stream of reports"
	check := func(last seen, want uint64, recreated bool) seen {
		t.Helper()
		got, err := feed.checkStreams(t.Context(), last)
		var again *recreatedError
		if got[stream].last != want || errors.As(err, &again) != recreated || recreated && !again.reports {
			t.Errorf("after %+v: %+v, %v", last, got, err)
		}
		return got
	}
	first := check(seen{}, 0, false)
	report(t, store, "web01", "r1")
	report(t, store, "web01", "r2")
	last := check(check(first, 2, false), 2, false)
	ahead := seen{stream: age{created: last[stream].created, last: 3}}
	back := check(ahead, 3, false)
	check(back, 0, true)
	report(t, store, "web01", "r3")
	check(check(back, 3, false), 3, false)
	manager := kvtest.Manager(t, srv)
	kvtest.Recreate(t, manager, "MUSTER_REPORTS", func(*api.StreamConfig) {})
	check(last, 0, true)
	for range 3 {
		report(t, store, "web01", "r3")
	}
	check(last, 0, true)
	if err := manager.DeleteStream("MUSTER_REPORTS"); err != nil {
		t.Fatal(err)
	}
	check(last, 2, false)
}

// TestStartsOver: after the stream of reports was recreated, the view has its data only and says so.
// Followers of the old view are disconnected and reconnect.
func TestStartsOver(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	report(t, store, "web01", "old")
	f := newFollower(Options{Store: storeOf(store), Keep: time.Hour, Log: slog.New(slog.DiscardHandler), CheckEvery: 10 * time.Millisecond, Webhooks: &webhook.Webhooks{}})
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	run(t, f)
	get := func(path string) string {
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	kvtest.Eventually(t, "the run is known", func() (bool, string) {
		text := get("/api/v1/runs")
		return strings.Contains(text, `"old"`), text
	})
	feed, err := http.Get(server.URL + "/api/v1/events/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Body.Close()
	kvtest.Recreate(t, kvtest.Manager(t, srv), "MUSTER_REPORTS", func(*api.StreamConfig) {})
	if _, err := io.ReadAll(feed.Body); err != nil {
		t.Error(err)
	}
	report(t, store, "web01", "new")
	kvtest.Eventually(t, "only what there is is known", func() (bool, string) {
		text := get("/api/v1/runs")
		return strings.Contains(text, `"new"`) && !strings.Contains(text, `"old"`) && strings.Contains(text, "created again"), text
	})
}

// TestHistory: the past is read in blocks, newest first, up to the retention, across removed and unreadable
// messages.
func TestHistory(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for i := range 5 {
		report(t, store, "web01", fmt.Sprintf("r%d", i))
	}
	srv.Raw(t, store.Names.Report("web01", "run", "stable"), "NATS/1.0\r\nX: y\r\n\r\n", "garbage")
	report(t, store, "web01", "r5")
	f := view.New(view.Options{})
	feed := newFeed(storeOf(store), f, time.Hour, slog.New(slog.DiscardHandler))
	feed.until = 7
	if err := feed.readHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := len(f.Events(view.EventQuery{}).Events); got != 5 || !f.Progress().History || len(f.Progress().Incomplete) != 1 {
		t.Errorf("%d events, %+v", got, f.Progress())
	}
}

// TestWhatTheStreamDroppedIsSaid for a node that reports more than the stream retains, and for no other. A
// follower from before knows more.
func TestWhatTheStreamDroppedIsSaid(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	bounds, err := kvstore.NewReports(store.Store).Bounds(t.Context())
	if err != nil || bounds.PerSubject == 0 {
		t.Fatalf("%+v, %v", bounds, err)
	}
	before := follow(t, store)
	is(t, before, "[] [] true true true")
	for i := range bounds.PerSubject + 1 {
		report(t, store, "web01", fmt.Sprintf("r%d", i))
	}
	report(t, store, "web02", "other")
	counted := func(f *view.Fleet) (runs int) {
		for _, p := range f.Overview().History {
			runs += p.Runs
		}
		return runs
	}
	kvtest.Eventually(t, "all are counted", func() (bool, string) { n := counted(before); return n == bounds.PerSubject+2, fmt.Sprint(n) })
	after := follow(t, store)
	kvtest.Eventually(t, "what is missing is said", func() (bool, string) {
		got := after.Progress().Incomplete
		return after.Progress().History && len(got) == 1 && strings.Contains(got[0], ": web01 (run stable) before 20") && !strings.Contains(got[0], "web02"), fmt.Sprint(got)
	})
	if got := before.Progress().Incomplete; len(got) != 0 || counted(after) != bounds.PerSubject+1 {
		t.Errorf("%d runs are counted by the one that started later; the other one lacks %q", counted(after), got)
	}
}

// TestHistoryGoesOn: after a failure, reading continues after the last added block, which counts once.
func TestHistoryGoesOn(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	srv.Raw(t, store.Names.Report("web01", "run", "stable"), "NATS/1.0\r\nX: y\r\n\r\n", "garbage")
	for i := range 2 {
		report(t, store, "web01", fmt.Sprintf("r%d", i))
	}
	f := view.New(view.Options{})
	feed := newFeed(storeOf(store), f, time.Hour, slog.New(slog.DiscardHandler))
	feed.until, feed.block = 4, block{from: 1}
	lost := errors.New("lost")
	broken := func(yield func(model.StoredReports, error) bool) {
		for m, err := range feed.Reports.Messages(t.Context(), model.ReportRange{}) {
			if m.Sequence == 3 {
				yield(m, lost)
				return
			}
			if !yield(m, err) {
				return
			}
		}
	}
	if err := feed.addPast(broken, time.Time{}); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	if err := feed.readHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.Progress().Incomplete; len(got) != 1 || !strings.Contains(got[0], "nor counted: 1;") || len(f.Events(view.EventQuery{}).Events) != 2 {
		t.Errorf("%+v", got)
	}
}

// TestSource: a run is found by its id, also where the clock of its node is wrong.
func TestSource(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	s := newSource(storeOf(store), slog.New(slog.DiscardHandler))
	wrong, err := ksuid.NewRandomWithTime(time.Now().Add(48 * time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{wrong.String(), ksuid.New().String()} {
		transaction := kvtest.Outgoing("web01", model.KindTransaction, model.OutcomeChanged, 1)
		transaction.Type, transaction.RunID = model.ProtocolTransaction, id
		transaction.Data, _ = json.Marshal(model.Transaction{Type: "file", Name: id})
		run := kvtest.Outgoing("web01", model.KindRun, model.OutcomeChanged, 2)
		run.RunID = id
		run.Data, _ = json.Marshal(model.Run{RunID: id})
		for _, r := range []model.Report{transaction, run} {
			if err := kvtest.Publish(t.Context(), store, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, id := range []string{wrong.String(), ksuid.New().String()} {
		d, err := s.Run(t.Context(), "web01", id)
		switch {
		case id != wrong.String():
			if !errors.Is(err, model.ErrNotFound) {
				t.Errorf("one that there is not: %+v, %v", d, err)
			}
		case err != nil || d.Run == nil || d.Run.RunID != id || len(d.Transactions) != 1 || d.Transactions[0].Name != id || d.Node != "web01":
			t.Errorf("%+v, %v", d, err)
		}
	}
	if _, err := s.Run(t.Context(), "web.01", wrong.String()); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("of no node: %v", err)
	}
	if all, err := s.Registrations(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := s.Facts(t.Context(), "web01"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("facts: %v", err)
	}
	if _, err := s.History(t.Context(), "group.all.motd"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("history: %v", err)
	}
}

// TestItsOwnPermissionsAreEnough to see nodes, labels, runs and events.
func TestItsOwnPermissionsAreEnough(t *testing.T) {
	t.Parallel()
	g := kvtest.ByConfig(t)
	state := model.NodeState{Node: "web01", Labels: map[string]string{"rack": "a3"}}
	if err := g.Admin.PutState(t.Context(), state, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Admin.Put(t.Context(), "group.all.motd", []byte("muster: {}")); err != nil {
		t.Fatal(err)
	}
	report(t, g.Admin, "web01", "before")
	store := kvtest.BindTo(t, g.Connect(t, kvtest.Dashboard))
	f := follow(t, store)
	kvtest.Eventually(t, "the history is there", func() (bool, string) { return f.Progress().History, known(f) })
	report(t, g.Admin, "web01", "after")
	kvtest.Eventually(t, "both runs are seen", func() (bool, string) {
		return len(f.Runs(view.EventQuery{})) == 2, known(f) + fmt.Sprint(f.Progress().Problems)
	})
	if n, ok := f.Node("web01"); !ok || n.Labels["rack"] != "a3" {
		t.Errorf("node = %+v", n)
	}
	if events := f.Events(view.EventQuery{}); len(events.Events) == 0 {
		t.Errorf("events = %+v", events)
	}
	if problems := f.Progress().Problems; len(problems) > 0 {
		t.Errorf("problems: %q", problems)
	}
	s := newSource(storeOf(store), slog.New(slog.DiscardHandler))
	if _, err := s.Registrations(t.Context()); err != nil {
		t.Error(err)
	}
	if all, err := s.History(t.Context(), "group.all.motd"); err != nil || len(all) != 1 {
		t.Errorf("history = %v, %v", all, err)
	}
}
