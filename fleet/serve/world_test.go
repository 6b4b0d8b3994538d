package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/fleet/webhook"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// storeOf returns the data of a fleet.
func storeOf(s *kvtest.Store) Store {
	return Store{
		Connection: s.Store, Nodes: kvstore.NewNodes(s.Store), Assignments: kvstore.NewAssignments(s.Store), Reports: kvstore.NewReports(s.Store),
		Control: kvstore.NewControl(s.Store), Registrations: kvstore.NewRegistrations(s.Store), Storage: requests.New(s.Store),
	}
}

// served is muster fleet serve over a store, but for its command line.
type served struct {
	t   *testing.T
	url string
	// stop ends it as a signal does.
	stop func()
	// deafFeeds is how many feeds are served to who does not read.
	deafFeeds atomic.Int64
}

// deafHeader marks requests for feeds by who does not read.
const deafHeader = "Deaf"

// serveFleet serves a fleet until the test ends, with the options of its access; the zero value is loopback
// without tokens.
func serveFleet(t *testing.T, store *kvtest.Store, o access.Options) *served {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	o.Listen = "127.0.0.1:0"
	g, err := access.New(o, quiet)
	if err != nil {
		t.Fatal(err)
	}
	l, err := g.Listen(t.Context(), MaxConnections)
	if err != nil {
		t.Fatal(err)
	}
	f := newFollower(Options{Store: storeOf(store), Keep: 24 * time.Hour, CheckEvery: 10 * time.Millisecond, Webhooks: &webhook.Webhooks{}, Log: quiet})
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
	s := &served{t: t, url: g.URL(l)}
	counting := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(deafHeader) != "" {
			s.deafFeeds.Add(1)
			defer s.deafFeeds.Add(-1)
		}
		f.ServeHTTP(w, r)
	})
	ended := make(chan error, 2)
	go func() { ended <- f.run(ctx) }()
	go func() { ended <- serve(ctx, l, g.Handler(counting), defaultPatience(), quiet) }()
	s.stop = sync.OnceFunc(func() {
		cancel(errOver)
		for range 2 {
			if err := <-ended; !errors.Is(err, errOver) && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
	t.Cleanup(s.stop)

	return s
}

// run has a follower run until the end of the test.
func run(t *testing.T, f *follower) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// text returns the content of a path. It asks again after a gateway timeout.
func (s *served) text(path string) (text string) {
	s.t.Helper()
	kvtest.Eventually(s.t, path, func() (bool, string) {
		request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+strings.TrimPrefix(path, "/"), nil)
		if err != nil {
			s.t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			s.t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		text = string(body)
		// The answer of a busy server is "try again".
		if err != nil || response.StatusCode != http.StatusOK && response.StatusCode != http.StatusGatewayTimeout {
			s.t.Fatalf("%s: %s %.300s %v", path, response.Status, body, err)
		}
		return response.StatusCode == http.StatusOK, text
	})

	return text
}

// get reads a document of the API.
func (s *served) get(path string, to any) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.text("api/v1/"+path)), to); err != nil {
		s.t.Fatalf("%s: %v", path, err)
	}
}

// overview returns the current overview.
func (s *served) overview() (o view.Overview) {
	s.t.Helper()
	s.get("overview", &o)

	return o
}

// complete waits until all stored data is known, with only the expected problems.
func (s *served) complete() {
	s.t.Helper()
	kvtest.Eventually(s.t, "all is known", func() (bool, string) {
		p := s.overview().Progress
		return p.Nodes && p.LastRuns && p.History, fmt.Sprintf("%+v", p)
	})
}

// lists are the lists of the API that do not depend on the time of the request.
var lists = []string{"nodes?limit=1000", "manifests", "runs?limit=1000", "events?limit=1000", "requests"}

// known returns all lists and the counts of the overview.
func (s *served) known() string {
	s.t.Helper()
	var out strings.Builder
	for _, path := range lists {
		var of map[string]any
		s.get(path, &of)
		delete(of, "progress")
		text, err := json.Marshal(of)
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s %s\n", path, text)
	}
	o, sum := s.overview(), view.Point{}
	for _, p := range o.History {
		sum.Runs, sum.Changed, sum.Failed, sum.Repaired = sum.Runs+p.Runs, sum.Changed+p.Changed, sum.Failed+p.Failed, sum.Repaired+p.Repaired
	}
	text, err := json.Marshal([]any{sum, o.Top, o.States})
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(&out, "overview %s\n", text)

	return out.String()
}

// difference returns where two texts begin to differ.
func difference(got, want string) string {
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	part := func(text string) string { return text[max(at-200, 0):min(at+200, len(text))] }

	return fmt.Sprintf("\ngot  …%s…\nwant …%s…", part(got), part(want))
}

// transactionOf returns a transaction of a run.
func transactionOf(t *testing.T, node, run string, data model.Transaction, outcome model.Outcome, seq uint64) model.Report {
	t.Helper()
	r := kvtest.Outgoing(node, model.KindTransaction, outcome, seq)
	r.Type, r.RunID, r.Manifest, r.Cause = model.ProtocolTransaction, run, "group.all.motd", model.CauseSchedule
	var err error
	if r.Data, err = json.Marshal(data); err != nil {
		t.Fatal(err)
	}

	return r
}

// runOf returns the summary of a run.
func runOf(t *testing.T, node, run string, outcome model.Outcome, seq uint64) model.Report {
	t.Helper()
	r := kvtest.Outgoing(node, model.KindRun, outcome, seq)
	r.RunID, r.Manifest, r.Cause = run, "group.all.motd", model.CauseSchedule
	var err error
	if r.Data, err = json.Marshal(model.Run{RunID: run, Manifest: r.Manifest, Started: time.Now(), Counts: model.Counts{Total: 3}}); err != nil {
		t.Fatal(err)
	}

	return r
}

// send publishes reports, again where the machine is too busy to store them in time.
func send(t *testing.T, store *kvtest.Store, all ...model.Report) {
	t.Helper()
	kvtest.Eventually(t, "the reports are stored", func() (bool, string) {
		n, err := store.PublishReports(t.Context(), all[:min(len(all), 200)])
		if all = all[n:]; err != nil {
			return false, err.Error()
		}
		return len(all) == 0, ""
	})
}
