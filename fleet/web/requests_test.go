package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/testing/webfleet"
)

// TestARunWithTheIDOfAnotherRequest: each has a page that leads to the other.
func TestARunWithTheIDOfAnotherRequest(t *testing.T) {
	t.Parallel()
	f := sample(40)
	if body := has(t, dashboard(f), "/requests/req-7c1f", http.StatusOK, "service#nginx"); strings.Contains(body, "Same id") {
		t.Error("there is no other with the id")
	}
	f.Change(func(d *webfleet.Data) {
		d.Requests = append(d.Requests, view.RequestRow{ID: "req-7c1f", Resource: "run", Nodes: 400, Answers: 399})
	})
	h := dashboard(f)
	has(t, h, "/requests", http.StatusOK, `href="/requests/req-7c1f">5 without answer`, `href="/requests/req-7c1f?run=true">1 without answer`)
	has(t, h, "/requests/req-7c1f", http.StatusOK, "service#nginx", "Same id", `href="/requests/req-7c1f?run=true"`)
	has(t, h, "/requests/req-7c1f?run=true", http.StatusOK, "399 nodes", "Same id", `href="/requests/req-7c1f"`, `href="/api/v1/requests/req-7c1f?run=true"`)
}
