package serve

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/webhook"
	"github.com/musterfleet/muster/testing/kvtest"
)

// receiver answers each event with a status.
type receiver struct {
	*httptest.Server
	status int
	mu     sync.Mutex
	nodes  []string
}

func newReceiver(t *testing.T, status int) *receiver {
	t.Helper()
	r := &receiver{status: status}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)

	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var event struct{ Source string }
	err := json.NewDecoder(q.Body).Decode(&event)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.nodes = append(r.nodes, strings.TrimPrefix(event.Source, "muster/node/"))
	}
	w.WriteHeader(r.status)
}

// has waits until the receiver has the events of some nodes, in their order.
func (r *receiver) has(t *testing.T, want ...string) {
	t.Helper()
	kvtest.Eventually(t, "the receiver has the reports", func() (bool, string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Equal(r.nodes, want), fmt.Sprint(r.nodes)
	})
}

// hooked returns a webhook to a receiver.
func hooked(t *testing.T, url string) *webhook.Webhooks {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := webhook.NewWebhooks("hooks.yaml", fmt.Appendf(nil, "webhooks:\n- name: pager\n  url: %s\n  secret_file: %s\n  kinds: [run]\n  outcomes: [stable]\n", url, secret))
	if err != nil {
		t.Fatal(err)
	}
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

// TestWebhookOfAnotherStream: after the stream was recreated, its reports are sent from the beginning, even
// if the courier notices before serve starts over.
func TestWebhookOfAnotherStream(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	r := newReceiver(t, http.StatusNoContent)
	f := newFollower(Options{Store: storeOf(store), Keep: time.Hour, Log: slog.New(slog.DiscardHandler), CheckEvery: time.Hour, Webhooks: hooked(t, r.URL)})
	run(t, f)
	reads(t, store)
	report(t, store, "web01", "r")
	report(t, store, "web02", "r")
	r.has(t, "web01", "web02")
	kvtest.Recreate(t, kvtest.Manager(t, srv), "MUSTER_REPORTS", func(*api.StreamConfig) {})
	report(t, store, "web03", "r")
	reads(t, store)
	report(t, store, "web04", "r")
	report(t, store, "web05", "r")
	r.has(t, "web01", "web02", "web03", "web04", "web05")
}

// TestWebhooksOfServe: serve sends, and has the metrics.
func TestWebhooksOfServe(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	r := newReceiver(t, http.StatusNoContent)
	f := newFollower(Options{Store: storeOf(store), Keep: time.Hour, Log: slog.New(slog.DiscardHandler), CheckEvery: time.Second, Webhooks: hooked(t, r.URL)})
	run(t, f)
	reads(t, store)
	report(t, store, "web01", "r")
	r.has(t, "web01")
	kvtest.Eventually(t, "the metric", func() (bool, string) {
		answer := httptest.NewRecorder()
		f.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return strings.Contains(answer.Body.String(), `muster_fleet_webhook_reports_total{outcome="sent",webhook="pager"} 1`), ""
	})
}

// TestWebhookThatFailsIsNoProblemOfTheFigures: the overview and a metric show it, and the figures stay
// current.
func TestWebhookThatFailsIsNoProblemOfTheFigures(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	r := newReceiver(t, http.StatusServiceUnavailable)
	f := newFollower(Options{Store: storeOf(store), Keep: time.Hour, Log: slog.New(slog.DiscardHandler), CheckEvery: time.Second, Webhooks: hooked(t, r.URL)})
	run(t, f)
	reads(t, store)
	report(t, store, "web01", "r")
	get := func(path string) string {
		answer := httptest.NewRecorder()
		f.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		return answer.Body.String()
	}
	var overview view.Overview
	kvtest.Eventually(t, "the overview", func() (bool, string) {
		overview = view.Overview{}
		text := get("/api/v1/overview")
		err := json.Unmarshal([]byte(text), &overview)
		return err == nil && len(overview.Webhooks) == 1, text
	})
	if w := overview.Webhooks[0]; w.Webhook != "pager" || !strings.Contains(w.Problem, "webhook pager cannot be delivered since") || len(overview.Progress.Problems) > 0 {
		t.Errorf("%+v, %q", w, overview.Progress.Problems)
	}
	if text := get("/metrics"); !strings.Contains(text, "\nmuster_fleet_problems 0\n") || !strings.Contains(text, "\nmuster_fleet_webhook_failing{webhook=\"pager\"} 1\n") {
		t.Error(text)
	}
	if text := get("/"); strings.Count(text, "cannot be delivered") != 1 {
		t.Error(text)
	}
	if text := get("/nodes"); strings.Contains(text, "cannot be delivered") {
		t.Error(text)
	}
}
