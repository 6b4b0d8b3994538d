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

// ownCgroup returns the directory of this process's group, empty for none.
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

// kill kills all processes of the group.
func (g *cgroup) kill() error { return os.WriteFile(g.file("cgroup.kill"), []byte("1"), 0) }

// end removes the group. It moves remaining processes to the group of muster, where they would be without a
// group, and waits briefly for killed processes.
func (g *cgroup) end() {
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
