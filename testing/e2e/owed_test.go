package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestKillBetweenAChangeAndItsRefresh kills muster with SIGKILL after a file has
// changed and before the command that subscribes to it has come to its end:
// the next run executes that, once.
func TestKillBetweenAChangeAndItsRefresh(t *testing.T) {
	cases := map[string]struct {
		between, reload string
		began           int // how often the command had begun when muster was killed
	}{
		"before the command":   {"echo yes > held; read line < gate", "echo began >> log; echo ended >> log", 0},
		"while the command is": {"echo yes > passed", "echo began >> log; test -e held || { echo yes > held; read line < gate; exit 1; }; echo ended >> log", 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in := func(name string) string { return filepath.Join(dir, name) }
			if err := syscall.Mkfifo(in("gate"), 0o600); err != nil {
				t.Fatal(err)
			}
			made, _, _ := strings.Cut(strings.TrimPrefix(c.between, "echo yes > "), ";")
			manifest := write(t, in("m.yaml"), fmt.Sprintf(`
muster:
  resources:
    - file:
        - %[1]s/config: {content: one, owner: "%[2]d", group: "%[3]d", mode: 0600}
    - exec:
        - between: {command: %[4]q, provider: shell, cwd: %[1]q, creates: %[1]s/%[5]s}
        - reload: {command: %[6]q, provider: shell, cwd: %[1]q, refresh_only: true, subscribe: ["file#%[1]s/config"]}
`, dir, os.Geteuid(), os.Getegid(), c.between, made, c.reload))
			p := start(t, in("state"), "apply", manifest)
			await(t, "the file is changed and the reload is not", func() bool { return exists(in("held")) })
			p.signal(syscall.SIGKILL)
			if code, text := p.wait(); code != -1 {
				t.Fatalf("it was not killed: exit code %d\n%s", code, text)
			}
			// The command outlives muster; let it end.
			write(t, in("gate"), "go\n")
			count := func(word string) int {
				text, err := os.ReadFile(in("log"))
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				return strings.Count(string(text), word)
			}
			if text, err := os.ReadFile(in("config")); err != nil || string(text) != "one" || count("began") != c.began || count("ended") != 0 {
				t.Fatalf("when it was killed: %q, %v, began %d, ended %d", text, err, count("began"), count("ended"))
			}
			for _, want := range []string{"exec#reload refreshed", "exec#reload stable"} {
				code, text := start(t, in("state"), "apply", manifest).wait()
				if code != 0 || !strings.Contains(text, want) || !strings.Contains(text, "config stable") {
					t.Fatalf("exit code %d, without %q:\n%s", code, want, text)
				}
				if count("began") != c.began+1 || count("ended") != 1 {
					t.Fatalf("began %d times, ended %d times", count("began"), count("ended"))
				}
			}
		})
	}
}
