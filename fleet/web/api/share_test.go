package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/web/api"
)

// TestFeedsOfOneReader: one user does not take the places of all others.
func TestFeedsOfOneReader(t *testing.T) {
	t.Parallel()
	a := newActing(t, 1)
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	open := func(token string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+api.Prefix+"/events/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	for i := range 50 {
		if answer := open(a.Read); answer.StatusCode != http.StatusOK {
			t.Fatalf("%d: %s", i, answer.Status)
		}
	}
	answer := open(a.Read)
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("a further one: %s", answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err != nil || answer.Header.Get("Retry-After") == "" || !strings.Contains(string(text), "which is the most for one user") {
		t.Errorf("%s %s %v", answer.Status, text, err)
	}
	if answer := open(a.Operate); answer.StatusCode != http.StatusOK {
		t.Errorf("another user: %s", answer.Status)
	}
}
