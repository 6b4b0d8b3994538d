package webhook_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/webhook"
	"github.com/musterfleet/muster/testing/webtest"
)

// TestReceiverThatSwitchesProtocols: the client hands the connection over with such an answer, and no
// time limit is on it any more.
func TestReceiverThatSwitchesProtocols(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	receiver := httptest.NewServer(webtest.SwitchProtocols(end))
	t.Cleanup(receiver.Close)
	t.Cleanup(func() { close(end) })
	s, err := webhook.NewSender(webhook.Hook{Name: "pager", URL: receiver.URL, SecretFile: secretFile(t, secret, 0o600)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Send(ctx, time.Now(), "id", nil); err == nil || !strings.Contains(err.Error(), "101 Switching Protocols") {
		t.Error(err)
	}
}
