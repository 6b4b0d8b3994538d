//go:build system

package browser

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestDashboard opens every page in Chromium, over muster fleet serve and a simulated fleet of 500 nodes with
// failures, drift and late nodes. The console logs no errors, axe-core finds no serious problem, no page is
// wider than the screen, and the pages work live and with the keyboard alone. MUSTER_SHOTS names a folder for
// screenshots, MUSTER_DOCS_SHOTS a folder for screenshots of the documentation.
func TestDashboard(t *testing.T) {
	w := newWorld(t)
	browse(t, "browser.mjs", "BASE="+w.url, "HOOK="+w.hooks(), "RUN="+w.failedRun(), "DOCS="+os.Getenv("MUSTER_DOCS_SHOTS"))
}

// TestOutage looks at the dashboard in Chromium while NATS is away: it does not call itself live.
func TestOutage(t *testing.T) {
	srv, store := kvtest.New(t)
	if err := store.PutState(t.Context(), model.NodeState{Node: "web01"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	url := runLogging(t, io.Discard, "--server", srv.URL(), "fleet", "serve", "--listen", "127.0.0.1:0")
	hooks := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stop" {
			srv.Stop()
		} else {
			srv.Start(t)
		}
	}))
	t.Cleanup(hooks.Close)
	browse(t, "outage.mjs", "BASE="+url, "HOOK="+hooks.URL)
}

// browse runs a script in a browser. The script prints the problems it finds.
func browse(t *testing.T, script string, env ...string) {
	t.Helper()
	tools, err := filepath.Abs("../../.rig/tools")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/usr/bin/chromium", tools + "/node_modules/playwright-core", tools + "/node_modules/axe-core"} {
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("%v: .ci/run installs it", err)
		}
	}
	cmd := exec.Command("node", script)
	cmd.Env = append(append(os.Environ(), "MODULES="+tools, "SHOTS="+os.Getenv("MUSTER_SHOTS")), env...)
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
