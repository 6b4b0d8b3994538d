package command

import (
	"bytes"
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// waiterPause is the interval between searches for waiters.
const waiterPause = 200 * time.Millisecond

// waiters are the running commands by process number, which also is the number of their session. The value
// reports whether one waited for the end of muster.
type waiters struct {
	mu     sync.Mutex
	waited map[int]bool
}

func (w *waiters) begin(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waited == nil {
		w.waited = map[int]bool{}
	}
	w.waited[pid] = false
}

// end reports whether the command waited for the end of muster.
func (w *waiters) end(pid int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	waited := w.waited[pid]
	delete(w.waited, pid)

	return waited
}

// EndWaiters ends each systemctl that waits in a command for a stop of the given unit, until ctx ends. This
// is the unit of muster: muster cannot end before the command, and the command would wait for muster. The job
// of systemd continues. A command that ends this way has exit code 0. Without a unit EndWaiters does nothing.
func (r *Runner) EndWaiters(ctx context.Context, unit string) {
	if unit == "" {
		return
	}
	tick := time.NewTicker(waiterPause)
	defer tick.Stop()
	for {
		r.waiters.endAll(unit)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// endAll ends the waiters that wait now.
func (w *waiters) endAll(unit string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waited) == 0 {
		return
	}
	for _, p := range processes() {
		if _, ours := w.waited[p.session]; ours && waitsFor(arguments(p.pid), unit) && unix.Kill(p.pid, unix.SIGTERM) == nil {
			w.waited[p.session] = true
		}
	}
}

// arguments returns the arguments of a process, the program first.
func arguments(pid int) []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil || len(text) == 0 {
		return nil
	}
	var out []string
	for argument := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte{0}), []byte{0}) {
		out = append(out, string(argument))
	}

	return out
}

// waitsFor reports whether a program is a systemctl that waits for a stop of a unit.
func waitsFor(argv []string, unit string) bool {
	if len(argv) == 0 || filepath.Base(argv[0]) != "systemctl" || slices.Contains(argv, "--no-block") || slices.ContainsFunc(argv, isElsewhere) {
		return false
	}
	verbs := []string{"stop", "restart", "try-restart", "reload-or-restart", "try-reload-or-restart"}
	if slices.Contains(argv, "--now") {
		verbs = append(verbs, "disable", "mask")
	}
	at := slices.IndexFunc(argv, func(word string) bool { return slices.Contains(verbs, word) })
	if at < 0 {
		return false
	}

	return slices.ContainsFunc(argv[at+1:], func(name string) bool {
		matches, _ := path.Match(name, unit)

		return matches || name == strings.TrimSuffix(unit, ".service")
	})
}

// isElsewhere reports whether an option of systemctl selects another manager than the manager of muster.
func isElsewhere(option string) bool {
	for _, other := range []string{"--user", "--host", "--machine", "-H", "-M"} {
		if strings.HasPrefix(option, other) {
			return true
		}
	}

	return false
}
