package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/kvtest"
)

// receiver takes events, unless answer says otherwise.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(node string, tries int) int
	tries  map[string]int
	taken  []string
}

func newReceiver(t *testing.T, answer func(node string, tries int) int) *receiver {
	t.Helper()
	r := &receiver{answer: answer, tries: map[string]int{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)

	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var event struct{ Source string }
	err := json.NewDecoder(q.Body).Decode(&event)
	r.mu.Lock()
	defer r.mu.Unlock()
	node := strings.TrimPrefix(event.Source, "muster/node/")
	r.tries[node]++
	status := r.answer(node, r.tries[node])
	if err != nil {
		status = http.StatusTeapot
	}
	if status == http.StatusNoContent {
		r.taken = append(r.taken, node)
	}
	w.WriteHeader(status)
}

func (r *receiver) has(t *testing.T, want ...string) {
	t.Helper()
	r.eventually(t, func(taken []string) bool { return slices.Equal(taken, want) })
}

// hasOnce leaves out what the receiver took before: a sender that is gone may have left a request.
func (r *receiver) hasOnce(t *testing.T, want ...string) {
	t.Helper()
	r.eventually(t, func(taken []string) bool {
		var once []string
		for _, node := range taken {
			if !slices.Contains(once, node) {
				once = append(once, node)
			}
		}
		return slices.Equal(once, want)
	})
}

func (r *receiver) eventually(t *testing.T, is func(taken []string) bool) {
	t.Helper()
	kvtest.Eventually(t, "the receiver has the reports", func() (bool, string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return is(r.taken), fmt.Sprint(r.taken)
	})
}

// TestFiguresBeforeReports: each webhook of the file has figures before its first report.
func TestFiguresBeforeReports(t *testing.T) {
	t.Parallel()
	if got, is := hooked(t, "http://127.0.0.1:1").Figures()["pager"]; !is || got != (Counts{}) {
		t.Errorf("figures %+v, %v", got, is)
	}
}

// shown are the notices.
type shown struct {
	mu  sync.Mutex
	now map[string]string
	was []string
}

func (s *shown) Problem(about, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now[about], s.was = text, append(s.was, text)
}

func (s *shown) Warning(about, text string) { s.Problem(about, text) }

func (s *shown) Clear(about string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.now, about)
}

// text returns the texts about an object.
func (s *shown) text(about string) string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.now[about]
}

// hooked returns a webhook to a receiver, and ends its connections with the test.
func hooked(t *testing.T, url string) *Webhooks {
	t.Helper()
	dir := t.TempDir()
	secret, file := filepath.Join(dir, "secret"), filepath.Join(dir, "hooks.yaml")
	for path, text := range map[string]string{
		secret: "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n",
		file:   fmt.Sprintf("webhooks:\n- name: pager\n  url: %s\n  secret_file: %s\n  kinds: [run]\n  outcomes: [stable]\n", url, secret),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWebhooks(file, data)
	if err != nil {
		t.Fatal(err)
	}
	w.first, w.most = time.Millisecond, time.Millisecond
	t.Cleanup(w.Close)

	return w
}

// reads waits until the webhook reads.
func reads(t *testing.T, store *kvtest.Store) {
	t.Helper()
	kvtest.Eventually(t, "the webhook reads", func() (bool, string) {
		_, err := store.JetStream().Consumer(t.Context(), "MUSTER_REPORTS", "webhook-pager")
		return err == nil, fmt.Sprint(err)
	})
}

// deliver runs the only webhook until the test ends, or stop is called.
func deliver(t *testing.T, store *kvtest.Store, w *Webhooks, show Notices) (stop func()) {
	t.Helper()

	return deliverTo(t, store, w, show, slog.New(slog.DiscardHandler))
}

// deliverLogged runs the only webhook until the test ends, and returns its log.
func deliverLogged(t *testing.T, store *kvtest.Store, w *Webhooks) *hosttest.LogText {
	t.Helper()
	log := &hosttest.LogText{}
	deliverTo(t, store, w, &shown{now: map[string]string{}}, slog.New(slog.NewTextHandler(log, nil)))

	return log
}

func deliverTo(t *testing.T, store *kvtest.Store, w *Webhooks, show Notices, log *slog.Logger) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	c := w.Couriers(kvstore.NewReports(store.Store), func(string) Notices { return show }, log, false)[0]
	go func() { done <- c.Deliver(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	reads(t, store)

	return stop
}

// TestWebhooks: a failed report is sent again and delays later ones, a refused one is skipped, and another
// serve continues at the same position.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	r := newReceiver(t, func(node string, tries int) int {
		switch {
		case node == "away" && tries <= 3:
			return http.StatusServiceUnavailable
		case node == "refused":
			return http.StatusUnprocessableEntity
		default:
			return http.StatusNoContent
		}
	})
	w, show := hooked(t, r.URL), &shown{now: map[string]string{}}
	stop := deliver(t, store, w, show)
	for _, node := range []string{"web01", "away", "refused", "web02"} {
		report(t, store, node, "r")
	}
	r.has(t, "web01", "away", "web02")
	kvtest.Eventually(t, "the figures", func() (bool, string) {
		got := w.figures.All()["pager"]
		return got.Sent == 3 && got.Refused == 1 && !got.Failing, fmt.Sprintf("%+v", got)
	})
	stop()
	if r.tries["away"] != 4 || r.tries["refused"] != 3 {
		t.Errorf("tried %v", r.tries)
	}
	if len(show.now) > 0 || !slices.ContainsFunc(show.was, func(text string) bool {
		return strings.Contains(text, "webhook pager cannot be delivered since") && strings.Contains(text, "503 Service Unavailable")
	}) {
		t.Errorf("shown %v, was %q", show.now, show.was)
	}

	report(t, store, "meanwhile", "r")
	deliver(t, store, hooked(t, r.URL), show)
	report(t, store, "web03", "r")
	r.has(t, "web01", "away", "web02", "meanwhile", "web03")
}

// TestTwoWebhooks: of two that serve, one sends, and the other takes over what that could not.
func TestTwoWebhooks(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	var works atomic.Bool
	tried := make(chan struct{})
	once := sync.OnceFunc(func() { close(tried) })
	r := newReceiver(t, func(string, int) int {
		once()
		if works.Load() {
			return http.StatusNoContent
		}
		return http.StatusBadGateway
	})
	show := &shown{now: map[string]string{}}
	stop := deliver(t, store, hooked(t, r.URL), show)
	report(t, store, "web01", "r")
	<-tried
	deliver(t, store, hooked(t, r.URL), show)
	stop()
	works.Store(true)
	report(t, store, "web02", "r")
	r.hasOnce(t, "web01", "web02")
}

// TestTwoServesSend: two with one file send each report once, and in order, whichever of them does.
func TestTwoServesSend(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	r := newReceiver(t, func(string, int) int { return http.StatusNoContent })
	show := &shown{now: map[string]string{}}
	deliver(t, store, hooked(t, r.URL), show)
	deliver(t, kvtest.Bind(t, srv), hooked(t, r.URL), show)
	var all []string
	for i := range 40 {
		all = append(all, fmt.Sprintf("web%02d", i))
		report(t, store, all[i], "r")
	}
	r.has(t, all...)
}

// TestWebhookRefusedThreeTimes: only what the receiver refuses three times is left out, however often it
// could not be delivered before.
func TestWebhookRefusedThreeTimes(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	r := newReceiver(t, func(_ string, tries int) int {
		return []int{503, 503, 503, 422, 503, 400, http.StatusNoContent}[tries-1]
	})
	deliver(t, store, hooked(t, r.URL), &shown{now: map[string]string{}})
	report(t, store, "web01", "r")
	r.has(t, "web01")
}

// TestWebhookOfABatch: the reports of a message may take longer together than the server waits for it.
func TestWebhookOfABatch(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	r := newReceiver(t, func(string, int) int { return http.StatusNoContent })
	w := hooked(t, r.URL)
	w.senders[0].Kinds, w.senders[0].Outcomes = []string{model.KindTransaction}, nil
	heard, err := store.Conn.SubscribeSync("$JS.ACK.MUSTER_REPORTS.webhook-pager.>")
	if err != nil {
		t.Fatal(err)
	}
	deliver(t, store, w, &shown{now: map[string]string{}})
	var batch []model.Report
	for range 3 {
		batch = append(batch, kvtest.Outgoing("web01", model.KindTransaction, model.OutcomeChanged, 1))
		batch[len(batch)-1].Data = json.RawMessage(`{"changed":true}`)
	}
	if err := kvstore.NewReports(store.Store).PublishBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"+WPI", "+WPI", "+WPI", "+ACK"} {
		m, err := heard.NextMsg(kvtest.Deadline)
		if err != nil || string(m.Data) != want {
			t.Fatalf("%d: %+v, %v", i, m, err)
		}
	}
	r.has(t, "web01", "web01", "web01")
}

// TestWebhookOfNoEvent: a report with a foreign id cannot be sent, and is counted.
func TestWebhookOfNoEvent(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	r := newReceiver(t, func(string, int) int { return http.StatusNoContent })
	w := hooked(t, r.URL)
	deliver(t, store, w, &shown{now: map[string]string{}})
	srv.Raw(t, store.Names.Report("web01", "run", "stable"), "NATS/1.0\r\nX: y\r\n\r\n", `{"specversion":"1.0","id":"x","source":"muster/node/web01","type":"io.muster.v1.run","data":{}}`)
	report(t, store, "web02", "r")
	r.has(t, "web02")
	if got := w.figures.All()["pager"]; got.Refused != 1 {
		t.Errorf("%+v", got)
	}
}

// ends ends a context when a notice is cleared: a report was taken.
type ends struct{ end context.CancelFunc }

func (ends) Problem(string, string) {}

func (ends) Warning(string, string) {}

func (e ends) Clear(about string) {
	if about == "webhook pager" {
		e.end()
	}
}

// TestWebhookTakenAtTheEnd: what a receiver took while serve ended is not sent again.
func TestWebhookTakenAtTheEnd(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	r := newReceiver(t, func(string, int) int { return http.StatusNoContent })
	ctx, end := context.WithCancel(t.Context())
	c := hooked(t, r.URL).Couriers(kvstore.NewReports(store.Store), func(string) Notices { return ends{end} }, slog.New(slog.DiscardHandler), true)[0]
	report(t, store, "web01", "r")
	if err := c.Deliver(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	deliver(t, store, hooked(t, r.URL), &shown{now: map[string]string{}})
	report(t, store, "web02", "r")
	r.has(t, "web01", "web02")
}

func TestWebhookFiles(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	w := hooked(t, "http://127.0.0.1:1")
	if err := w.Check(kvstore.NewReports(store.Store)); err != nil {
		t.Error(err)
	}
	w.senders[0].Kinds = []string{model.KindNode}
	if err := w.Check(kvstore.NewReports(store.Store)); err == nil || !strings.Contains(err.Error(), "no report of the kinds [node] has one of the outcomes [stable]") {
		t.Error(err)
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
