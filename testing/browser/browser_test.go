//go:build system

package browser

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestDashboard opens every page in Chromium, over muster fleet serve and a simulated fleet of 500
// nodes with failures, drift and late ones: nothing is logged as an error, axe-core finds nothing
// serious, nothing is wider than the screen, and it can be used by keyboard alone and live.
// MUSTER_SHOTS names a folder for screenshots, MUSTER_DOCS_SHOTS one for those of the documentation.
func TestDashboard(t *testing.T) {
	w := newWorld(t)
	browse(t, "browser.mjs", "BASE="+w.url, "HOOK="+w.hooks(), "RUN="+w.failedRun(), "DOCS="+os.Getenv("MUSTER_DOCS_SHOTS"))
}

// browse runs a script in a browser, which prints what is wrong.
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
