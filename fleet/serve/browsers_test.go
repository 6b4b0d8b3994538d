package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// livePages are pages that many look at.
var livePages = []string{"/", "/nodes", "/manifests", "/events", "/nodes?state=failed", "/requests", "/events?kind=run", "/nodes?sort=heard", "/nodes/web00", "/nodes?q=web"}

// browser follows a path by server-sent events.
type browser struct {
	path  string
	lines *bufio.Scanner
}

// open opens the stream of a path, which ends with the context.
func (s *served) open(ctx context.Context, client *http.Client, path string) *browser {
	s.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+strings.TrimPrefix(path, "/"), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	response, err := client.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %+v, %v", path, response, err)
	}
	s.t.Cleanup(func() { _ = response.Body.Close() })
	b := &browser{path, bufio.NewScanner(response.Body)}
	b.lines.Buffer(nil, 4<<20)

	return b
}

// sees reads until there is a text, and reports whether there was.
func (b *browser) sees(text string) bool {
	for b.lines.Scan() {
		if strings.Contains(b.lines.Text(), text) {
			return true
		}
	}

	return false
}

// deaf opens a connection that asks for a stream and never reads it.
func (s *served) deaf(path, header string) {
	s.t.Helper()
	address := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/")
	c, err := net.Dial("tcp", address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n%s\r\n", path, header)
}

// TestTwoHundredBrowsers: 200 browsers see reports on pages and in the feed beside 200 that never read, which
// are disconnected.
func TestTwoHundredBrowsers(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for i := range 50 {
		put(t, store, fmt.Sprintf("web%02d", i), 1)
	}
	s := serveFleet(t, kvtest.Bind(t, srv), access.Options{})
	s.complete()
	const each = 200
	for i := range each / 2 {
		s.deaf("/api/v1/events/stream", deafHeader+": yes\r\n")
		s.deaf(livePages[i%len(livePages)], "")
	}
	kvtest.Eventually(t, "the feeds are open", func() (bool, string) { return s.deafFeeds.Load() == each/2, "" })
	ctx, cancel := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxIdleConns: 1}}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	for i := range each {
		path, text := "/api/v1/events/stream?node=the-last", "the-last"
		if i%2 == 0 {
			path = []string{"/events", "/nodes"}[i/2%2]
		}
		b := s.open(ctx, client, path)
		all.Go(func() {
			if !b.sees(text) && t.Context().Err() == nil {
				t.Errorf("%s does not show what was reported: %v, %v", b.path, b.lines.Err(), ctx.Err())
			}
		})
	}
	put(t, store, "web00", 2)
	var events []model.Report
	for i := range 6000 {
		r := runOf(t, fmt.Sprintf("web%02d", i%50), ksuid.New().String(), model.OutcomeFailed, uint64(i+1))
		events = append(events, r)
	}
	send(t, store, events...)
	put(t, store, "the-last", 1)
	send(t, store, runOf(t, "the-last", "last", model.OutcomeFailed, 1))
	all.Wait()
	// The feed has more for each of them than the kernel keeps.
	kvtest.Eventually(t, "those that do not read are dropped", func() (bool, string) {
		left := s.deafFeeds.Load()
		return left == 0, fmt.Sprint(left)
	})
	if o := s.overview(); o.Total != 51 {
		t.Errorf("%d nodes", o.Total)
	}
}

// TestWrongRequests: of other sites, by other names, and with places in the feed that there never were.
func TestWrongRequests(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	report(t, store, "web01", "r1")
	s := serveFleet(t, kvtest.Bind(t, srv), access.Options{})
	s.complete()
	ask := func(method, path string, header map[string]string) (int, string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, method, s.url+strings.TrimPrefix(path, "/"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range header {
			if request.Header.Set(name, value); name == "Host" {
				request.Host = value
			}
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		buffer := make([]byte, 4096)
		n, _ := io.ReadAtLeast(response.Body, buffer, 12)
		return response.StatusCode, string(buffer[:n])
	}
	for _, host := range []string{"evil.example.net", "10.0.0.1:8420", "localhost.evil.example.net"} {
		for _, path := range []string{"/", "/api/v1/nodes", "/metrics", "/sd/registrations", "/events", "/login"} {
			if status, text := ask(http.MethodGet, path, map[string]string{"Host": host}); status != http.StatusMisdirectedRequest {
				t.Errorf("%s of %s: %d %.100s", path, host, status, text)
			}
		}
	}
	for _, header := range []map[string]string{{"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example.net"}, {"Sec-Fetch-Site": "same-site"}} {
		for _, path := range []string{"/", "/api/v1/nodes", "/logout", "/login"} {
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
				if status, text := ask(method, path, header); status != http.StatusForbidden {
					t.Errorf("%s %s %v: %d %.100s", method, path, header, status, text)
				}
			}
		}
	}
	stream := map[string]string{"Accept": "text/event-stream"}
	for _, id := range []string{"garbage", "-1", "18446744073709551615", "99999999999999999999999", "7.99999999999", "0", "0.0", "1.-1", "<script>", "\u202e", strings.Repeat("9", 64), strings.Repeat("x", 64)} {
		stream["Last-Event-ID"] = id
		if status, text := ask(http.MethodGet, "/api/v1/events/stream", stream); status != http.StatusOK || !strings.HasPrefix(text, "retry: ") || strings.Contains(text, "<script>") {
			t.Errorf("the feed after %q: %d %.100s", id, status, text)
		}
		if status, text := ask(http.MethodGet, "/nodes", stream); status != http.StatusOK || !strings.HasPrefix(text, "retry: ") {
			t.Errorf("the page after %q: %d %.100s", id, status, text)
		}
	}
	stream["Last-Event-ID"] = strings.Repeat("9", 60_000)
	if status, text := ask(http.MethodGet, "/api/v1/events/stream", stream); status != http.StatusUnprocessableEntity {
		t.Errorf("the feed after a very long id: %d %.100s", status, text)
	}
	if status, _ := ask(http.MethodGet, "/nodes", stream); status != http.StatusOK {
		t.Errorf("the page after a very long id: %d", status)
	}
	for _, after := range []string{"garbage", "-1", "99999999999999999999999", "1.1.1"} {
		if status, text := ask(http.MethodGet, "/api/v1/events/stream?after="+after, nil); status != http.StatusUnprocessableEntity {
			t.Errorf("after=%s: %d %.100s", after, status, text)
		}
	}
}
