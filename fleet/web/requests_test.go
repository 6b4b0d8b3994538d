package web_test

import (
	"errors"
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

// TestRequestPage tests that equal output is shown once, with a row per node, failures first.
func TestRequestPage(t *testing.T) {
	t.Parallel()
	f := sample(40)
	h := dashboard(f)
	has(t, h, "/requests", http.StatusOK, `href="/requests/req-66d0"`)
	body := has(t, h, "/requests/req-66d0", http.StatusOK, "exit code 3", "exit code 0", "uptime: cannot open", "up 12 days", "38 nodes", "2 nodes",
		`href="/api/v1/requests/req-66d0/answers.csv"`, `href="/api/v1/requests/req-66d0/answers"`)
	if strings.Count(body, "up 12 days") != 1 || strings.Index(body, "cannot open") > strings.Index(body, "up 12 days") {
		t.Error(body)
	}
	if n := strings.Count(body, `href="/nodes/`); n != 40 {
		t.Errorf("%d rows", n)
	}
	// A label and its value are in one cell of the grid.
	if strings.Contains(body, "</dd><dt>") {
		t.Error(body)
	}
	f.Change(func(d *webfleet.Data) { d.Err = errors.New("NATS cannot be reached now") })
	has(t, dashboard(f), "/requests/req-66d0", http.StatusOK, "The answers cannot be read: NATS cannot be reached now")
}
