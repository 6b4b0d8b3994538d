package web_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/testing/webfleet"
)

// TestPagesOfOneUser: one user does not take the places of all others who look at live pages.
func TestPagesOfOneUser(t *testing.T) {
	t.Parallel()
	a := newActing(t, webfleet.Sample(1, time.Now()))
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	open := func(token string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/nodes", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/event-stream")
		r.AddCookie(a.SignIn(t, token))
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	for i := range 100 {
		if answer := open(a.Read); answer.StatusCode != http.StatusOK {
			t.Fatalf("%d: %s", i, answer.Status)
		}
	}
	answer := open(a.Read)
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("a further one: %s", answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err != nil || answer.Header.Get("Retry-After") == "" || !strings.Contains(string(text), "100 live pages of wall are open, which is the most for one user") {
		t.Errorf("%s %s %v", answer.Status, text, err)
	}
	if answer := open(a.Operate); answer.StatusCode != http.StatusOK {
		t.Errorf("another user: %s", answer.Status)
	}
}
