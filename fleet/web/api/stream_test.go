package api_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/api"
	"github.com/musterfleet/muster/testing/kvtest"
)

// reader is one of the feed.
type reader struct {
	t     *testing.T
	lines *bufio.Scanner
	leave context.CancelFunc
}

// connect begins to read the feed of a server.
func connect(t *testing.T, server *httptest.Server, query, lastID string) *reader {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+api.Prefix+"/events/stream"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	answer, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %v", answer.Status, answer.Header)
	}

	return &reader{t, bufio.NewScanner(answer.Body), leave}
}

// message returns the lines of the next message, joined by |; empty at the end.
func (r *reader) message() string {
	var lines []string
	for r.lines.Scan() {
		if r.lines.Text() == "" && len(lines) > 0 {
			break
		}
		lines = append(lines, r.lines.Text())
	}

	return strings.Join(lines, "|")
}

// is reads a message, which must have a prefix.
func (r *reader) is(prefix string) {
	r.t.Helper()
	if got := r.message(); !strings.HasPrefix(got, prefix) || prefix == "" && got != "" {
		r.t.Errorf("message %q, want %q", got, prefix)
	}
}

func TestFeed(t *testing.T) {
	t.Parallel()
	f := newFixture()
	server := httptest.NewServer(serve(f))
	t.Cleanup(server.Close)

	r := connect(t, server, "?kind=run&node=web01", "")
	one := kvtest.Receive(t, f.feeds)
	if one.query != (view.EventQuery{Kind: "run", Node: "web01"}) {
		t.Errorf("asked %+v", one.query)
	}
	r.is(`retry: 2000|event: progress|data: {"nodes":true`)
	for _, seq := range []uint64{5, 7, 7, 8} {
		one.events <- event(seq)
	}
	r.is(`id: 5.1|event: event|data: {"seq":5,`)
	r.is("id: 7.1|")
	r.is("id: 7.2|")
	r.is("id: 8.1|")

	// It continues after the view disconnects a slow reader.
	one.events <- event(9)
	close(one.events)
	r.is("id: 9.1|")
	kvtest.Receive(t, one.cancelled)
	two := kvtest.Receive(t, f.feeds)
	if two.query.After != 8 || two.query.Kind != "run" {
		t.Errorf("asked %+v", two.query)
	}
	for _, seq := range []uint64{9, 9, 10} {
		two.events <- event(seq)
	}
	r.is("id: 9.2|")
	r.is("id: 10.1|")
	r.leave()
	kvtest.Receive(t, two.cancelled)
}

func TestFeedGoesOnWhereAReaderWas(t *testing.T) {
	t.Parallel()
	f := newFixture()
	server := httptest.NewServer(serve(f))
	t.Cleanup(server.Close)
	for _, c := range []struct {
		query, id string
		after     uint64
		first     string
	}{
		{"?after=7", "", 7, "id: 8.1|"},
		{"?after=3", "7", 7, "id: 8.1|"},
		{"", "7.1", 6, "id: 7.2|"},
		{"", "7.2", 6, "id: 8.1|"},
		{"", "garbage", 0, "id: 7.1|"},
	} {
		r := connect(t, server, c.query, c.id)
		one := kvtest.Receive(t, f.feeds)
		if one.query.After != c.after {
			t.Errorf("%+v: asked %+v", c, one.query)
		}
		seqs := []uint64{7, 7, 8}
		if c.after == 7 {
			seqs = seqs[2:]
		}
		for _, seq := range seqs {
			one.events <- event(seq)
		}
		r.is("retry:")
		r.is(c.first)
		r.leave()
		kvtest.Receive(t, one.cancelled)
	}
}

// TestFeedOfALargeBatch: the view disconnects the reader within one seq each time. The batch is skipped and
// reported.
func TestFeedOfALargeBatch(t *testing.T) {
	t.Parallel()
	f := newFixture()
	server := httptest.NewServer(serve(f))
	t.Cleanup(server.Close)
	r := connect(t, server, "", "7.1")
	r.is("retry:")
	one := kvtest.Receive(t, f.feeds)
	one.events <- event(7)
	close(one.events)
	r.is("id: 7|event: gap|data: {}")
	two := kvtest.Receive(t, f.feeds)
	if two.query.After != 7 {
		t.Errorf("asked %+v", two.query)
	}
	two.events <- event(8)
	r.is("id: 8.1|")

	// A model that ends it without a reason is not asked for ever.
	close(two.events)
	three := kvtest.Receive(t, f.feeds)
	close(three.events)
	r.is("id: 8|event: gap")
	close(kvtest.Receive(t, f.feeds).events)
	r.is("")
}

// TestFeedsAreBounded: more feeds are refused with a time to retry.
func TestFeedsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.feeds = make(chan feed, 1000)
	h := serve(f)
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan int, 500)
	for range 500 {
		go func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+"/events/stream", nil).WithContext(ctx))
			ended <- w.Code
		}()
	}
	for range 500 {
		kvtest.Receive(t, f.feeds)
	}
	r := get(t, h, "/events/stream")
	if p := problemOf(t, r); r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" || !strings.Contains(p.Detail, "500 feeds") {
		t.Errorf("%+v", p)
	}
	leave()
	for range 500 {
		kvtest.Receive(t, ended)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodHead, api.Prefix+"/events/stream", nil))
	if w.Code != http.StatusOK {
		t.Errorf("HEAD: %d", w.Code)
	}
}
