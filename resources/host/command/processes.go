package command

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// cgroups creates a control group for each command and all its child processes. The zero value creates none.
type cgroups struct {
	// parent is muster's own group, empty if groups cannot be created.
	parent string
	count  atomic.Int64
}

// findCgroups returns the version 2 groups if this user can create them and kill them as a whole.
func findCgroups() *cgroups {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return &cgroups{}
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return &cgroups{}
	}
	parent := ownCgroup(string(mounts), string(own))
	if parent == "" || unix.Access(parent, unix.W_OK) != nil || unix.Access(filepath.Join(parent, "cgroup.procs"), unix.W_OK) != nil {
		return &cgroups{}
	}
	removeGone(parent)

	return &cgroups{parent: parent}
}

// groupPrefix and the number of a process begin the name of a group.
const groupPrefix = "muster-"

func removeGone(parent string) {
	paths, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*-*"))
	for _, path := range paths {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), groupPrefix), "-")
		if pid, err := strconv.Atoi(text); err == nil && unix.Kill(pid, 0) == unix.ESRCH {
			_ = os.Remove(path)
		}
	}
}

func ownCgroup(mounts, own string) string {
	path := ""
	for line := range strings.Lines(own) {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), "0::"); found {
			path = rest
		}
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if path == "" || len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		below, err := filepath.Rel(fields[3], path)
		if err == nil && filepath.IsLocal(below) {
			return filepath.Join(fields[4], below)
		}
	}

	return ""
}

type cgroup struct {
	dir    *os.File
	parent string
}

// start creates a group, nil if that is impossible.
func (c *cgroups) start() *cgroup {
	if c.parent == "" {
		return nil
	}
	path := filepath.Join(c.parent, fmt.Sprintf("%s%d-%d", groupPrefix, os.Getpid(), c.count.Add(1)))
	if os.Mkdir(path, 0o755) != nil {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil || unix.Access(filepath.Join(path, "cgroup.kill"), unix.W_OK) != nil {
		// Kernels before 5.14 kill only processes.
		_ = dir.Close()
		_ = os.Remove(path)
		return nil
	}

	return &cgroup{dir: dir, parent: c.parent}
}

func (g *cgroup) file(name string) string { return filepath.Join(g.dir.Name(), name) }

func (g *cgroup) kill() error { return os.WriteFile(g.file("cgroup.kill"), []byte("1"), 0) }

// end removes the group. It moves remaining processes to the group of muster, where they would be without a
// group, and waits briefly for killed processes.
func (g *cgroup) end() {
	if g == nil {
		return
	}
	defer func() { _ = g.dir.Close() }()
	const tries = 10
	for try := range tries {
		if os.Remove(g.dir.Name()) == nil {
			return
		}
		if try > 0 { // all processes have ended
			time.Sleep(time.Millisecond << try)
		}
		left, err := os.ReadFile(g.file("cgroup.procs"))
		if err != nil {
			return
		}
		for pid := range strings.FieldsSeq(string(left)) {
			_ = os.WriteFile(filepath.Join(g.parent, "cgroup.procs"), []byte(pid), 0)
		}
	}
}

// runVariable is an environment variable that only the processes of one run have.
const runVariable = "MUSTER_RUN"

// killTree kills a command without a control group, and its processes: its session, its descendants, and
// orphans in other sessions whose environment contains the mark of the command. It stops all of them before
// it kills any, so that none escapes.
func killTree(leader int, env []string) {
	mark := ""
	if run := lookupEnv(env, runVariable); run != "" {
		mark = runVariable + "=" + run
	}
	stopped := map[int]bool{}
	for found := true; found; {
		found = false
		for pid := range tree(leader, mark) {
			if !stopped[pid] {
				stopped[pid], found = true, true
				_ = unix.Kill(pid, unix.SIGSTOP)
			}
		}
	}
	for pid := range stopped {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

func tree(leader int, mark string) map[int]bool {
	all := processes()
	at := slices.IndexFunc(all, func(p procfs.ProcStat) bool { return p.PID == leader })
	if at < 0 {
		return nil
	}
	began, in := all[at].Starttime, map[int]bool{leader: true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !in[p.PID] && p.Starttime >= began && (in[p.PPID] || p.Session == leader || isOrphan(p, mark)) {
				in[p.PID], grown = true, true
			}
		}
	}

	return in
}

// isOrphan reports whether a process with the mark has lost its parent. Other processes with the mark may
// belong to another command of the run.
func isOrphan(p procfs.ProcStat, mark string) bool {
	return p.PPID != os.Getpid() && hasMark(p.PID, mark) && !hasMark(p.PPID, mark)
}

func hasMark(pid int, mark string) bool {
	p, err := procfs.NewProc(pid)
	if err != nil || mark == "" {
		return false
	}
	env, _ := p.Environ()

	return slices.Contains(env, mark)
}

func processes() []procfs.ProcStat {
	var out []procfs.ProcStat
	all, _ := procfs.AllProcs()
	for _, p := range all {
		if stat, err := p.Stat(); err == nil {
			out = append(out, stat)
		}
	}

	return out
}

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

func (w *waiters) endAll(unit string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waited) == 0 {
		return
	}
	for _, p := range processes() {
		if _, ours := w.waited[p.Session]; ours && waitsFor(arguments(p.PID), unit) && unix.Kill(p.PID, unix.SIGTERM) == nil {
			w.waited[p.Session] = true
		}
	}
}

func arguments(pid int) []string {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return nil
	}
	argv, _ := p.CmdLine()

	return argv
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

// OwnUnit returns the systemd unit of this process on the machine below root, empty if it has no unit that
// can be managed.
func OwnUnit(root string) string {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return ""
	}

	return unitOfGroup(string(text))
}

// unitOfGroup returns the system unit of control groups in the format of /proc/self/cgroup, empty if there is
// none that can be managed.
func unitOfGroup(groups string) string {
	for line := range strings.Lines(groups) {
		// Version 2, and the group of version 1 that systemd uses.
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		if controllers != "" && controllers != "name=systemd" {
			continue
		}
		for name := range strings.SplitSeq(path, "/") {
			// systemd escapes names that have a meaning for control groups.
			if name = strings.TrimPrefix(name, "_"); strings.HasSuffix(name, ".service") {
				return name
			}
		}
	}

	return ""
}
