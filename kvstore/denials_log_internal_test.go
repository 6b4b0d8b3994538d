package kvstore

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/hosttest"
)

// TestManyDenials checks that the memory and the number of logged lines stay limited.
func TestManyDenials(t *testing.T) {
	t.Parallel()
	var text hosttest.LogText
	d := NewDenialLog(slog.New(slog.NewTextHandler(&text, nil)))
	c := DenialContext{Inbox: "_INBOX_web01", Mistaken: func(string) error { return nil }}
	for i := range 50 * maxDenials {
		d.Note(c.Of(fmt.Errorf("nats: Permissions Violation for Subscription to %q", fmt.Sprintf("evil.%d", i))))
		if i%1000 == 0 {
			d.flush()
		}
	}
	d.flush()
	if len(d.noted) > maxDenials {
		t.Errorf("%d are known", len(d.noted))
	}
	if n := strings.Count(text.String(), "\n"); n == 0 || n > 10 {
		t.Errorf("%d lines were logged", n)
	}
}
