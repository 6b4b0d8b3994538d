package webhook

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/testing/kvtest"
)

// TestWebhookThatIsBehind: the age of the current report is a metric and a notice, which end after a quiet
// time.
func TestWebhookThatIsBehind(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	asked, release := make(chan struct{}), make(chan struct{})
	r := newReceiver(t, func(string, int) int {
		close(asked)
		<-release
		return http.StatusNoContent
	})
	w, show := hooked(t, r.URL), &shown{now: map[string]string{}}
	w.late, w.idle = 0, time.Millisecond
	deliver(t, store, w, show)
	before := time.Now()
	report(t, store, "web01", "r")
	<-asked
	// Server times are coarser than the times of this process.
	if got := w.figures.All()["pager"].Sending; got.Before(before.Add(-time.Second)) || got.After(time.Now().Add(time.Second)) {
		t.Errorf("sent is what was stored at %s, and that was %s", got, before)
	}
	if text := show.text("webhook pager late"); !strings.Contains(text, "webhook pager is behind: the current report was stored 0 min ago") {
		t.Errorf("shown %q", text)
	}
	close(release)
	kvtest.Eventually(t, "the webhook is in time", func() (bool, string) {
		got, text := w.figures.All()["pager"], show.text("webhook pager late")
		return got.Sent == 1 && got.Sending.IsZero() && text == "", fmt.Sprintf("%+v, %q", got, text)
	})
}

// TestWebhookIsBehindUntilTheNextReport: a webhook stays late between two reports, also if it stops reading.
func TestWebhookIsBehindUntilTheNextReport(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	r := newReceiver(t, func(string, int) int { return http.StatusNoContent })
	w, show := hooked(t, r.URL), &shown{now: map[string]string{}}
	w.late, w.idle = 0, time.Hour
	stop := deliver(t, store, w, show)
	report(t, store, "web01", "r")
	kvtest.Eventually(t, "the report is sent", func() (bool, string) {
		got := w.figures.All()["pager"]
		return got.Sent == 1, fmt.Sprintf("%+v", got)
	})
	if got := w.figures.All()["pager"]; got.Sending.IsZero() || show.text("webhook pager late") == "" {
		t.Errorf("%+v is in time", got)
	}
	stop()
	if got := w.figures.All()["pager"]; !got.Sending.IsZero() || show.text("webhook pager late") != "" {
		t.Errorf("%+v is behind, though nothing is read", got)
	}
}
