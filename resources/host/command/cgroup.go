package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// cgroups makes a control group for each command, in which all that it starts
// stays. The zero value makes none.
type cgroups struct {
	// parent is muster's own group, empty where groups cannot be made.
	parent string
	count  atomic.Int64
}

// findCgroups returns the groups of version 2, as far as they can be killed as a
// whole and made by this user.
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

// removeGone removes the empty groups of processes that were killed.
func removeGone(parent string) {
	paths, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*-*"))
	for _, path := range paths {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), groupPrefix), "-")
		if pid, err := strconv.Atoi(text); err == nil && unix.Kill(pid, 0) == unix.ESRCH {
			_ = os.Remove(path)
		}
	}
}

// ownCgroup returns the directory of the group of this process, empty for none.
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

// cgroup is the control group of one command.
type cgroup struct {
	dir    *os.File
	parent string
}

// start makes a group, nil where none can be made.
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

// kill kills all processes of the group.
func (g *cgroup) kill() error { return os.WriteFile(g.file("cgroup.kill"), []byte("1"), 0) }

// end removes the group. What the command has left running goes to the group of
// muster, where it would be without one; what was killed is waited for a little.
func (g *cgroup) end() {
	defer func() { _ = g.dir.Close() }()
	const tries = 10
	for try := range tries {
		if os.Remove(g.dir.Name()) == nil {
			return
		}
		if try > 0 { // nothing else was left to move
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
