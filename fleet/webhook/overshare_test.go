package webhook

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/kvtest"
)

// ofChanges returns a webhook that has the changes of resources, and of each node at most so many at once.
func ofChanges(t *testing.T, url string, most int, late time.Duration) *Webhooks {
	t.Helper()
	w := hooked(t, url)
	w.senders[0].Kinds, w.senders[0].Outcomes = []string{model.KindTransaction}, nil
	w.late, w.shares = late, func() *Shares { return NewShares(most, time.Hour) }

	return w
}

// changes stores so many changes of a node in one message.
func changes(t *testing.T, store *kvtest.Store, node string, n int) {
	t.Helper()
	batch := make([]model.Report, n)
	for i := range batch {
		batch[i] = kvtest.Outgoing(node, model.KindTransaction, model.OutcomeChanged, 1)
		batch[i].Data = json.RawMessage(`{"changed":true}`)
	}
	if err := kvstore.NewReports(store.Store).PublishBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
}

// TestWebhookOfAFlood: a late webhook skips and reports the reports of a node beyond its share; reports of
// others are sent.
func TestWebhookOfAFlood(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	r := newReceiver(t, func(string, int) int { return http.StatusNoContent })
	w, show := ofChanges(t, r.URL, 3, 0), &shown{now: map[string]string{}}
	stop := deliver(t, store, w, show)
	changes(t, store, "evil", 20)
	changes(t, store, "evil", 20)
	changes(t, store, "web01", 2)
	r.has(t, "evil", "evil", "evil", "web01", "web01")
	kvtest.Eventually(t, "the figures", func() (bool, string) {
		got := w.figures.All()["pager"]
		return got.Sent == 5 && got.OverShare == 37 && got.Refused == 0, fmt.Sprintf("%+v", got)
	})
	stop()
	if now := show.now["webhook pager share"]; !strings.Contains(now, "webhook pager left out 37 reports of nodes that report too much, last of evil at") {
		t.Errorf("shown %v", show.now)
	}
}

// TestWebhookInTimeLeavesNothingOut: without a delay no reports are skipped, however many a node sends.
func TestWebhookInTimeLeavesNothingOut(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	r := newReceiver(t, func(string, int) int { return http.StatusNoContent })
	w := ofChanges(t, r.URL, 1, time.Hour)
	deliver(t, store, w, &shown{now: map[string]string{}})
	changes(t, store, "web01", 4)
	r.has(t, "web01", "web01", "web01", "web01")
}

// TestWebhookLogOfAFloodIsBounded, for any duration of the flood.
func TestWebhookLogOfAFloodIsBounded(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	r := newReceiver(t, func(string, int) int { return http.StatusNoContent })
	w := ofChanges(t, r.URL, 1, 0)
	log := deliverLogged(t, store, w)
	for range 30 {
		changes(t, store, "evil", 2)
	}
	changes(t, store, "web01", 1)
	r.has(t, "evil", "web01")
	if n := strings.Count(log.String(), "webhook leaves out reports of a node that reports too much"); n != 10 {
		t.Errorf("%d lines: %s", n, log)
	}
}

// TestWebhookOfRefusedReports: what the receiver does not take of one node holds up the others once, and is a few
// lines of the log.
func TestWebhookOfRefusedReports(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	r := newReceiver(t, func(node string, _ int) int {
		if node == "evil" {
			return http.StatusBadRequest
		}
		return http.StatusNoContent
	})
	w, show, log := ofChanges(t, r.URL, 1000, time.Hour), &shown{now: map[string]string{}}, &hosttest.LogText{}
	stop := deliverTo(t, store, w, show, slog.New(slog.NewTextHandler(log, nil)))
	changes(t, store, "evil", 20)
	changes(t, store, "web01", 1)
	r.has(t, "web01")
	kvtest.Eventually(t, "the figures", func() (bool, string) {
		got := w.figures.All()["pager"]
		return got.Sent == 1 && got.Refused == 20, fmt.Sprintf("%+v", got)
	})
	stop()
	if r.tries["evil"] != 60 {
		t.Errorf("%d tries", r.tries["evil"])
	}
	// A notice for each pause.
	if len(show.was) != 2 || len(show.now) > 0 {
		t.Errorf("shown %q, now %v", show.was, show.now)
	}
	if n := strings.Count(log.String(), "webhook does not take a report"); n != 10 {
		t.Errorf("%d lines: %s", n, log)
	}
}

// TestTriesOfRefusedReportsCount: a report that is sent three times takes as much of the share of its node.
func TestTriesOfRefusedReportsCount(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	r := newReceiver(t, func(node string, _ int) int {
		if node == "evil" {
			return http.StatusBadRequest
		}
		return http.StatusNoContent
	})
	w := ofChanges(t, r.URL, 6, 0)
	deliver(t, store, w, &shown{now: map[string]string{}})
	changes(t, store, "evil", 5)
	changes(t, store, "web01", 1)
	r.has(t, "web01")
	kvtest.Eventually(t, "the figures", func() (bool, string) {
		got := w.figures.All()["pager"]
		return got.Sent == 1 && got.Refused == 2 && got.OverShare == 3, fmt.Sprintf("%+v", got)
	})
}

// TestNoticeOutlivesEarlierTimer checks that a timer of an earlier change clears nothing, even if it has already fired.
func TestNoticeOutlivesEarlierTimer(t *testing.T) {
	t.Parallel()
	n, show := &notice{}, &shown{now: map[string]string{}}
	remove := func() { show.Clear("share") }
	replace := func(during time.Duration, text string) {
		n.change(func() { show.Warning("share", text) }, during, remove)
	}
	replace(time.Hour, "1 report")
	replace(time.Hour, "2 reports")
	if n.end(1, remove); show.text("share") != "2 reports" {
		t.Errorf("shown %q", show.now)
	}
	if n.end(2, remove); show.text("share") != "" {
		t.Errorf("shown %q", show.now)
	}
	replace(time.Nanosecond, "3 reports")
	kvtest.Eventually(t, "the notice is cleared", func() (bool, string) { return show.text("share") == "", show.text("share") })
}
