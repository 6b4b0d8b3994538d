package web_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web"
	"github.com/musterfleet/muster/testing/webfleet"
)

// follower reads the updates of a page.
type follower struct {
	t     *testing.T
	lines *bufio.Scanner
	body  interface{ Close() error }
}

// follow opens the stream of a page.
func follow(t *testing.T, address string) *follower {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := response.Header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
		t.Fatalf("%s: %s %s", address, response.Status, got)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<22)

	return &follower{t, lines, response.Body}
}

// next returns the data of the next event, and its name; both are empty at the end.
func (f *follower) next() (name, data string) {
	f.t.Helper()
	for f.lines.Scan() {
		field, value, _ := strings.Cut(f.lines.Text(), ": ")
		switch {
		case field == "event":
			name = value
		case field == "data":
			data += value + "\n"
		case field == "" && name != "":
			return name, data
		}
	}

	return "", ""
}

// serve serves the dashboard of a fleet, and returns what ends its streams.
func serve(t *testing.T, f *webfleet.Fleet) (address string, end func()) {
	t.Helper()
	done := make(chan struct{})
	server := httptest.NewServer(web.New(web.Options{Model: f, Source: f, Version: webfleet.Version, Done: done}))
	end = sync.OnceFunc(func() { close(done) })
	t.Cleanup(server.Close)
	t.Cleanup(end)

	return server.URL, end
}

// stop lets the node with a name be stopped.
func stop(f *webfleet.Fleet, i int) {
	f.Change(func(d *webfleet.Data) {
		nodes := append(d.Nodes[:0:0], d.Nodes...)
		nodes[i].Event = "stopped"
		d.Nodes = nodes
	})
}

// TestUpdates: a page gets its content again only after a change.
func TestUpdates(t *testing.T) {
	t.Parallel()
	f := sample(20)
	address, end := serve(t, f)
	live := follow(t, address+"/nodes?state=stopped")
	if name, data := live.next(); name != "page" || !strings.Contains(data, "0 of 20 nodes") {
		t.Fatalf("it begins with %s %q", name, data)
	}
	// A change elsewhere sends nothing: the next event is a change of this page.
	f.Change(func(d *webfleet.Data) { d.Requests = nil })
	stop(f, 4)
	if _, data := live.next(); !strings.Contains(data, "1 of 20 nodes") {
		t.Errorf("after the change: %q", data)
	}
	end()
	if name, _ := live.next(); name != "" {
		t.Errorf("after the shutdown: %s", name)
	}
}

// TestStreamGoesOn: a browser with the current content gets only other content.
func TestStreamGoesOn(t *testing.T) {
	t.Parallel()
	f := sample(5)
	address, _ := serve(t, f)
	response, err := http.Get(address + "/manifests")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page := new(strings.Builder)
	if _, err := bufio.NewReader(response.Body).WriteTo(page); err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`sse-connect="(/manifests\?have=[0-9a-f]+)"`).FindStringSubmatch(page.String())
	if m == nil {
		t.Fatal("the page has no stream")
	}
	live := follow(t, address+m[1])
	f.Change(func(d *webfleet.Data) { d.Entries = d.Entries[:1] })
	if _, data := live.next(); !strings.Contains(data, "1 manifest<") {
		t.Errorf("the first that comes: %q", data)
	}
}

// TestFinalPagesEnd: the page of a run that is over is not updated.
func TestFinalPagesEnd(t *testing.T) {
	t.Parallel()
	f := sample(20)
	address, _ := serve(t, f)
	if body := has(t, dashboard(f), "/runs/"+webfleet.FailedRun, http.StatusOK); strings.Contains(body, "sse-connect") {
		t.Error("the page has a stream")
	}
	live := follow(t, address+"/runs/"+webfleet.FailedRun)
	if name, _ := live.next(); name != "page" {
		t.Errorf("it begins with %s", name)
	}
	if name, _ := live.next(); name != "end" {
		t.Errorf("then %s", name)
	}
	f.Change(func(d *webfleet.Data) {
		detail := d.Details[webfleet.FailedRun]
		detail.Run = nil
		d.Details = map[string]view.RunDetail{webfleet.FailedRun: detail}
	})
	has(t, dashboard(f), "/runs/"+webfleet.FailedRun, http.StatusOK, "sse-connect", "In progress")
	for _, path := range []string{"/registrations", "/events?before=7"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept", "text/event-stream")
		w := httptest.NewRecorder()
		if dashboard(f).ServeHTTP(w, r); w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
}

// TestManyBrowsersCostAsMuchAsOne: browsers of one page share its rendering.
func TestManyBrowsersCostAsMuchAsOne(t *testing.T) {
	t.Parallel()
	const browsers = 200
	f := sample(50)
	address, end := serve(t, f)
	var all []*follower
	for range browsers {
		all = append(all, follow(t, address+"/nodes?state=stopped"))
	}
	for _, live := range all {
		live.next()
	}
	before := f.Calls()
	stop(f, 0)
	var wg sync.WaitGroup
	for _, live := range all {
		wg.Go(func() {
			if _, data := live.next(); !strings.Contains(data, "1 of 50 nodes") {
				t.Errorf("a browser got %q", data)
			}
		})
	}
	wg.Wait()
	if calls := f.Calls() - before; calls > browsers/4 {
		t.Errorf("%d browsers asked the model %d times", browsers, calls)
	}
	end()
	for _, live := range all {
		live.next()
	}
	for f.Watchers() > 0 {
		<-time.After(time.Millisecond) // the test ends after its time where they still follow the changes
	}
}

// slowBrowser does not read. Writes to it fail after the deadline.
type slowBrowser struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (s *slowBrowser) SetWriteDeadline(at time.Time) error {
	s.deadline = at
	return nil
}

func (s *slowBrowser) Write([]byte) (int, error) {
	if s.deadline.IsZero() {
		return 0, nil
	}

	return 0, os.ErrDeadlineExceeded
}

func (s *slowBrowser) WriteString(text string) (int, error) { return s.Write([]byte(text)) }

// TestSlowBrowserIsDropped instead of being waited for.
func TestSlowBrowserIsDropped(t *testing.T) {
	t.Parallel()
	f := sample(5)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept", "text/event-stream")
	w := &slowBrowser{ResponseRecorder: httptest.NewRecorder()}
	dashboard(f).ServeHTTP(w, r)
	if left := time.Until(w.deadline); left <= 0 || left > time.Minute || f.Watchers() != 0 {
		t.Errorf("it has %s to read, %d streams are left", left, f.Watchers())
	}
}

// TestQuietStreamStays: delivered data has no deadline. A passed deadline would end an HTTP/2 stream.
func TestQuietStreamStays(t *testing.T) {
	t.Parallel()
	f := sample(5)
	w := &patientBrowser{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodGet, "/runs/"+webfleet.FailedRun, nil) // it is over, and so is its stream
	r.Header.Set("Accept", "text/event-stream")
	if dashboard(f).ServeHTTP(w, r); !strings.Contains(w.Body.String(), "event: end") || !w.deadline.IsZero() {
		t.Errorf("%.200s has until %s", w.Body, w.deadline)
	}
}

// patientBrowser reads whatever it is sent.
type patientBrowser struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (b *patientBrowser) SetWriteDeadline(at time.Time) error {
	b.deadline = at
	return nil
}

// runReads counts how often a run is read that has not ended.
type runReads struct {
	*webfleet.Fleet
	count int
}

func (r *runReads) Run(context.Context, string, string) (view.RunDetail, error) {
	r.count++

	return view.RunDetail{}, nil
}

// TestOpenRun: the page of a run without a summary reads the stream of reports at most every five seconds,
// whatever changes.
func TestOpenRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := sample(1)
		source := &runReads{Fleet: f}
		site := web.New(web.Options{Model: f, Source: source, Version: webfleet.Version})
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/runs/web01/r1", nil)
		r.Header.Set("Accept", "text/event-stream")
		done := make(chan struct{})
		go func() {
			defer close(done)
			site.ServeHTTP(httptest.NewRecorder(), r)
		}()
		often := time.NewTicker(100 * time.Millisecond)
		for range 200 {
			f.Change(func(*webfleet.Data) {})
			<-often.C
		}
		often.Stop()
		cancel()
		<-done
		if source.count < 2 || source.count > 5 {
			t.Errorf("it was read %d times in 20 seconds", source.count)
		}
	})
}
