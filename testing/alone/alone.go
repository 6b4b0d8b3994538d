// Package alone runs tests in separate processes, for properties of a whole process: its limits, its
// environment, its garbage collection.
package alone

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// variable marks the process of a test.
const variable = "MUSTER_TEST_ALONE"

// Run runs the calling test in a separate process with additional environment variables (NAME=value), and
// reports whether this is that process.
func Run(t *testing.T, env ...string) bool {
	t.Helper()
	if os.Getenv(variable) == t.Name() {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	cmd.Env = append(os.Environ(), append(env, variable+"="+t.Name())...)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name()+" ")) {
		t.Errorf("in a process of its own: %v", err)
	}

	return false
}
