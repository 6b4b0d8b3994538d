//go:build system

package browser

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/webfleet"
)

// TestDashboard opens every page in Chromium: nothing is logged as an error, axe-core finds nothing
// serious, nothing is wider than the screen, and it can be used by keyboard alone and live.
// MUSTER_SHOTS names a folder for screenshots.
func TestDashboard(t *testing.T) {
	tools, err := filepath.Abs("../../.rig/tools")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/usr/bin/chromium", tools + "/node_modules/playwright-core", tools + "/node_modules/axe-core"} {
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("%v: .ci/run installs it", err)
		}
	}
	fleet := webfleet.New(webfleet.Sample(500, time.Now()), time.Now)
	done := make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle("/", web.New(web.Options{Model: fleet, Source: fleet, Version: webfleet.Version, Done: done}))
	mux.HandleFunc("POST /test/delay", func(http.ResponseWriter, *http.Request) { fleet.Change(delayOne) })
	mux.HandleFunc("POST /test/event", func(http.ResponseWriter, *http.Request) { fleet.Change(reportOne) })
	server := httptest.NewServer(mux)
	defer server.Close()
	defer close(done)

	cmd := exec.Command("node", "browser.mjs")
	cmd.Env = append(os.Environ(), "BASE="+server.URL, "MODULES="+tools, "RUN="+webfleet.FailedRun, "SHOTS="+os.Getenv("MUSTER_SHOTS"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	if len(out) > 0 {
		t.Errorf("%s", out)
	}
}

// delayOne lets one more node be late.
func delayOne(d *webfleet.Data) {
	d.Nodes = slices.Clone(d.Nodes)
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if m := n.Manifests[d.Entries[0].Key]; m.Revision == d.Entries[0].Revision {
			n.Manifests = maps.Clone(n.Manifests)
			m.Revision--
			n.Manifests[d.Entries[0].Key] = m
			return
		}
	}
}

// reportOne adds an event.
func reportOne(d *webfleet.Data) {
	e := view.Event{Seq: d.Events[0].Seq + 1, ID: "new", Time: time.Now(), Node: "web003", Kind: model.KindRun, Outcome: model.OutcomeChanged, Text: "a new event of the test"}
	d.Events = append([]view.Event{e}, d.Events...)
}
