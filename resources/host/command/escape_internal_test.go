package command

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestKillTree is TestRunKillsWhatLeavesItsSession without control groups. Another command of the run and its
// children survive.
func TestKillTree(t *testing.T) {
	const orphan = `(setsid sh -c 'echo $$; exec sleep 1000' &); sleep 1000`
	r := &Runner{onStart: func([]string) {}, groups: &cgroups{}}
	begin := func(script string) (pid int, stop func() error) {
		ctx, cancel := context.WithCancel(t.Context())
		begun, ended := make(chan string, 100), make(chan error, 1)
		go func() {
			_, err := r.Run(ctx, Command{Argv: []string{"sh", "-c", script}, Env: []string{"MUSTER_RUN=a,b"}, OnLine: func(line string, _ bool) { begun <- line }})
			ended <- err
		}()
		pid, err := strconv.Atoi(<-begun)
		if err != nil {
			t.Fatal(err)
		}
		return pid, sync.OnceValue(func() error {
			cancel()
			return <-ended
		})
	}
	// ends waits for the end of a process.
	ends := func(pid int, patience time.Duration) bool {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return true
		}
		defer unix.Close(fd)
		n, err := 0, error(unix.EINTR)
		for err == unix.EINTR {
			n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		}
		return n == 1
	}
	for _, script := range []string{orphan, `setsid sh -c 'echo $$; exec sleep 1000' & wait`, `(sh -c 'echo $$; exec sleep 1000' &); sleep 1000`} {
		pid, stop := begin(script)
		other, stopOther := begin(`setsid sh -c 'echo $$; exec sleep 1000' & wait`)
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", script, err)
		}
		if !ends(pid, time.Minute) {
			t.Errorf("%s: process %d goes on", script, pid)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if ends(other, 0) {
			t.Errorf("%s: another command was killed", script)
		}
		_ = stopOther()
	}
}

func TestOwnCgroup(t *testing.T) {
	const pure = "24 20 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
	const hybrid = "31 20 0:30 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
	const bound = "24 20 0:22 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	for name, c := range map[string][3]string{
		"a service":          {pure, "0::/system.slice/muster.service\n", "/sys/fs/cgroup/system.slice/muster.service"},
		"the root":           {pure, "0::/\n", "/sys/fs/cgroup"},
		"both versions":      {hybrid, "9:name=systemd:/\n1:cpu:/x\n0::/init.scope\n", "/sys/fs/cgroup/unified/init.scope"},
		"version 1":          {"31 20 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "1:cpu:/\n", ""},
		"a part":             {bound, "0::/docker/abc/x\n", "/sys/fs/cgroup/x"},
		"another part":       {bound, "0::/../x\n", ""},
		"what is not usable": {"nonsense\n - cgroup2\n", "0::/\n", ""},
	} {
		if got := ownCgroup(c[0], c[1]); got != c[2] {
			t.Errorf("%s: it is %q, not %q", name, got, c[2])
		}
	}
}

// TestCgroupsAreRemoved leaves a process behind, which survives.
func TestCgroupsAreRemoved(t *testing.T) {
	r := New(nil)
	if r.groups.parent == "" {
		t.Log("no control group can be made here: only the other way is tested")
	}
	result, err := r.Run(t.Context(), Command{Argv: []string{"sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"}})
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(result.Stdout.String()))
	if err != nil || unix.Kill(pid, 0) != nil || unix.Kill(pid, unix.SIGKILL) != nil {
		t.Errorf("process %d is gone: %v", pid, err)
	}
	if gone := New(nil); gone.groups.parent != r.groups.parent {
		t.Errorf("the groups are in %q, not %q", gone.groups.parent, r.groups.parent)
	}
	entries, _ := os.ReadDir(r.groups.parent)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "muster-"+strconv.Itoa(os.Getpid())+"-") {
			t.Errorf("the group %s is left", entry.Name())
		}
	}
}
