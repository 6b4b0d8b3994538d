package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/fleet/webhook"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestBucketsCreatedAgain: the view has the data of the new bucket although its revisions start again, and
// says so; also without permission to create consumers.
func TestBucketsCreatedAgain(t *testing.T) {
	t.Parallel()
	for _, bucket := range []string{"MUSTER_NODES", "MUSTER_MANIFESTS"} {
		for _, viewer := range []bool{false, true} {
			t.Run(fmt.Sprint(bucket, " viewer ", viewer), func(t *testing.T) {
				t.Parallel()
				g := kvtest.ByConfig(t)
				store := g.Admin
				admin := nats.UserInfo("admin", "admin")
				used := kvtest.Bind(t, g.Server, admin)
				if viewer {
					used = kvtest.BindTo(t, g.Connect(t, kvtest.Viewer))
				}
				for i := range 5 {
					if _, err := store.Put(t.Context(), "group.all.old", fmt.Append(nil, "muster: {data: {i: ", i, "}}")); err != nil {
						t.Fatal(err)
					}
					put(t, store, "old", 1)
				}
				s := serveFleet(t, used, access.Options{})
				s.complete()
				kvtest.Recreate(t, kvtest.Manager(t, g.Server, admin), "KV_"+bucket, func(*api.StreamConfig) {})
				put(t, store, "new", 1)
				if _, err := store.Put(t.Context(), "group.all.new", []byte("muster: {}")); err != nil {
					t.Fatal(err)
				}
				kvtest.Eventually(t, "only what there is is known", func() (bool, string) {
					text := s.text("api/v1/nodes") + s.text("api/v1/manifests")
					old := map[string]string{"MUSTER_NODES": `"node":"old"`, "MUSTER_MANIFESTS": `"name":"old"`}[bucket]
					return strings.Contains(text, `"node":"new"`) && strings.Contains(text, `"name":"new"`) && !strings.Contains(text, old), text
				})
				kvtest.Eventually(t, "the page says so", func() (bool, string) {
					page := s.text("/")
					return strings.Contains(page, "was created again"), page
				})
			})
		}
	}
}

// backup copies the files of a server, which is stopped for that.
func backup(t *testing.T, srv *natstest.Server) (dir string) {
	t.Helper()
	dir = t.TempDir()
	srv.Stop()
	if err := os.CopyFS(dir, os.DirFS(srv.Store())); err != nil {
		t.Fatal(err)
	}
	srv.Start(t)

	return dir
}

// restore puts the files of a server back, which is stopped for that.
func restore(t *testing.T, srv *natstest.Server, dir string) {
	t.Helper()
	srv.Stop()
	if err := os.RemoveAll(srv.Store()); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(srv.Store(), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	srv.Start(t)
}

// TestRestoredAndOvertaken: a restored stream is detected even if many new messages hide its lower sequence.
// A stream that only continues, restarts included, is the same. Also without permission to create consumers.
func TestRestoredAndOvertaken(t *testing.T) {
	t.Parallel()
	g := kvtest.ByConfig(t)
	admin := nats.UserInfo("admin", "admin")
	viewer := newFeed(storeOf(kvtest.BindTo(t, g.Connect(t, kvtest.Viewer))), view.New(view.Options{}), time.Hour, slog.New(slog.DiscardHandler))
	publish := func(id string) {
		t.Helper()
		store := kvtest.Bind(t, g.Server, admin) // it may have been started again
		for i := range 3 {
			report(t, store, "web01", fmt.Sprint(id, i))
			if _, err := store.Put(t.Context(), "group.all.motd", fmt.Appendf(nil, "muster: {data: {id: %s, i: %d}}", id, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	look := func(last seen) seen {
		t.Helper()
		for _, stream := range viewer.streams() { // an unreadable one keeps the known data
			kvtest.Eventually(t, "the streams can be read", func() (bool, string) {
				_, _, err := stream.stream.Age(t.Context())
				return err == nil, fmt.Sprint(err)
			})
		}
		now, err := viewer.checkStreams(t.Context(), last)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	publish("old")
	dir := backup(t, g.Server)
	publish("lost")
	first := look(seen{})
	publish("lost-too")
	last := look(look(first))
	g.Server.Restart(t)
	last = look(last)
	restore(t, g.Server, dir)
	for range 4 {
		publish("other")
	}
	for _, stream := range []string{viewer.Reports.Name(), viewer.Assignments.Name()} {
		if last[stream].last <= first[stream].last {
			t.Errorf("%s: %+v after %+v", stream, last[stream], first[stream])
		}
		now := look(seen{})
		if now[stream].last <= last[stream].last || !now[stream].created.Equal(last[stream].created) {
			t.Errorf("%s is not overtaken: %+v after %+v", stream, now[stream], last[stream])
		}
		var again *recreatedError
		if _, err := viewer.checkStreams(t.Context(), seen{stream: last[stream]}); !errors.As(err, &again) {
			t.Errorf("%s: %+v after %+v, %v", stream, now[stream], last[stream], err)
		}
	}
}

// TestRestoredWhileServed: reports that are missing after a restore disappear, although nodes continue to
// report, and the page says so.
func TestRestoredWhileServed(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	report(t, store, "web01", "kept")
	dir := backup(t, srv)
	reports := func(id string) {
		t.Helper()
		bound := kvtest.Bind(t, srv)
		for i := range 10 {
			report(t, bound, "web01", fmt.Sprint(id, i))
		}
	}
	reports("lost")
	f := newFollower(Options{Store: storeOf(kvtest.Bind(t, srv)), Keep: time.Hour, Log: slog.New(slog.DiscardHandler), CheckEvery: time.Hour, Webhooks: &webhook.Webhooks{}})
	run(t, f)
	get := func(path string) string {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Body.String()
	}
	kvtest.Eventually(t, "the reports are known", func() (bool, string) {
		text := get("/api/v1/runs")
		return strings.Contains(text, `"lost9"`) && strings.Contains(text, `"kept"`), text
	})
	restore(t, srv, dir)
	reports("new")
	reports("more")
	kvtest.Eventually(t, "only what there is is known", func() (bool, string) {
		text := get("/api/v1/runs")
		return strings.Contains(text, `"kept"`) && strings.Contains(text, `"new0"`) && strings.Contains(text, `"more9"`) && !strings.Contains(text, `"lost`), text
	})
	kvtest.Eventually(t, "the page has the notice and is current", func() (bool, string) {
		page := get("/")
		return strings.Contains(page, "the stream of reports was created again or restored") && !strings.Contains(page, "data-stale"), page
	})
	kvtest.Eventually(t, "no problem is counted", func() (bool, string) {
		text := get("/metrics")
		return strings.Contains(text, "\nmuster_fleet_problems 0\n"), text
	})
}

// TestRestoredTogether: a backup restores several streams at once, and the notice names the losses of each.
func TestRestoredTogether(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	assign := func(store *kvtest.Store, id string) {
		t.Helper()
		report(t, store, "web01", id)
		if _, err := store.Put(t.Context(), "group.all.motd", fmt.Appendf(nil, "muster: {data: {id: %s}}", id)); err != nil {
			t.Fatal(err)
		}
	}
	assign(store, "kept")
	dir := backup(t, srv)
	assign(kvtest.Bind(t, srv), "lost")
	f := newFeed(storeOf(kvtest.Bind(t, srv)), view.New(view.Options{}), time.Hour, slog.New(slog.DiscardHandler))
	last, err := f.checkStreams(t.Context(), seen{})
	if err != nil {
		t.Fatal(err)
	}
	restore(t, srv, dir)
	assign(kvtest.Bind(t, srv), "new")
	f = newFeed(storeOf(kvtest.Bind(t, srv)), view.New(view.Options{}), time.Hour, slog.New(slog.DiscardHandler))
	_, err = f.checkStreams(t.Context(), last)
	var again *recreatedError
	if !errors.As(err, &again) || !again.reports || again.what != "stream of reports and the bucket MUSTER_MANIFESTS" || !strings.Contains(again.gone, "requests and reports") || !strings.Contains(again.gone, "pushes and removals") {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestNoticeOfARestore: the notice shows the losses of all restored streams in full.
func TestNoticeOfARestore(t *testing.T) {
	t.Parallel()
	srv, _ := kvtest.New(t)
	shown := view.New(view.Options{})
	f := newFeed(storeOf(kvtest.Bind(t, srv)), shown, time.Hour, slog.New(slog.DiscardHandler))
	var all []*recreatedError
	for _, s := range f.streams() {
		all = append(all, &s.recreatedError)
	}
	var again *recreatedError
	errors.As(joinRecreated(all), &again)
	shown.SetNotice(again.notice(time.Unix(1_800_000_000, 0)))
	got := shown.Progress().Notice
	for _, want := range []string{
		"the stream of reports, the bucket MUSTER_NODES and the bucket MUSTER_MANIFESTS were created again or restored, as seen at ",
		"requests and reports that were not restored are lost", "nodes are missing until", "nodes may run manifests that are no longer assigned",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}
