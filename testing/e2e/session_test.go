package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneRefreshForOneChangeOfASession: each subscriber gets one refresh per change, independent of the
// commands in between.
func TestOneRefreshForOneChangeOfASession(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	t.Setenv("TMPDIR", dir)
	text := muster(t, state, "session", "new")
	_, store, found := strings.Cut(strings.TrimSpace(text), "=")
	if !found {
		t.Fatal(text)
	}
	t.Setenv("MUSTER_SESSION_STORE", store)
	ensure := func(args ...string) {
		t.Helper()
		muster(t, state, append([]string{"ensure"}, args...)...)
	}
	config := func(content string) {
		t.Helper()
		ensure("file", filepath.Join(dir, "config"), "--content", content, "--owner", fmt.Sprint(os.Geteuid()), "--group", fmt.Sprint(os.Getegid()), "--mode", "0600")
	}
	reload := func(name string) {
		t.Helper()
		ensure("exec", name, "--command", "echo "+name+" >> log", "--provider", "shell", "--cwd", dir, "--refresh-only", "--subscribe", "file#"+filepath.Join(dir, "config"))
	}
	reloaded := func(want ...string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(dir, "log"))
		if err != nil || strings.Join(strings.Fields(string(got)), " ") != strings.Join(want, " ") {
			t.Fatalf("%q, not %v: %v", got, want, err)
		}
	}
	config("one")
	reload("a")
	reload("a")
	reloaded("a")
	config("one") // stable: the change before is still to reach b
	reload("b")
	reload("a")
	reload("b")
	reloaded("a", "b")
	config("two")
	config("three")
	reload("b")
	reload("b")
	reload("a")
	reloaded("a", "b", "b", "a")
}
