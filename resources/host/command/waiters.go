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

// waiterPause is how often waiters are looked for.
const waiterPause = 200 * time.Millisecond

// waiters are the commands that run, by the numbers of their processes, which are those of their
// sessions too; whether one has waited for the end of muster.
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

// end returns whether the command has waited for the end of muster.
func (w *waiters) end(pid int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	waited := w.waited[pid]
	delete(w.waited, pid)

	return waited
}

// EndWaiters ends, until ctx ends, each systemctl of a command that waits for a stop of a unit, the
// one that muster is in: muster does not end before the command does. The job goes on without
// it. A command that ends with it has the exit code 0. Nothing is done without a unit.
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

// endAll ends those that wait now.
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

// arguments returns those of a process, the program first.
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

// waitsFor reports whether a program with its arguments is a systemctl that waits for a stop of a
// unit.
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

// isElsewhere reports whether an option of systemctl is about another manager than the one that
// muster runs below.
func isElsewhere(option string) bool {
	for _, other := range []string{"--user", "--host", "--machine", "-H", "-M"} {
		if strings.HasPrefix(option, other) {
			return true
		}
	}

	return false
}
