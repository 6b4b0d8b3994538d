//go:build system

package rigs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// boot makes the machine's file system and starts systemd in it. Each container gets a cgroup; with
// --keep-unit two containers would share one. The end of its input, at the latest the end of the test's
// process, powers the machine off and removes its cgroups.
const boot = `set -e
name=$1 base=$2
shift 2
exec 3<&0 </dev/null
` + overlay + `
for group; do mkdir $group; done
sh -c 'for group; do echo $$ > $group/cgroup.procs; done
exec systemd-nspawn --quiet --directory=` + root + ` --machine=$0 --boot --notify-ready=yes --register=no --keep-unit \
  --private-network --link-journal=no --resolv-conf=off --timezone=off' "$name" "$@" &
container=$!
(read _ <&3 || kill -TERM $container) &
off=$!
status=0
wait $container || status=$?
kill $off 2>/dev/null || true
for group; do find $group -depth -type d -exec rmdir {} \;; done
exit $status`

// bootTime is how long a machine may take to boot, and again to power off.
const bootTime = time.Minute

// Boot makes a machine with systemd as first process and waits until it is up. Its network is a loopback
// interface. The end of the test powers it off.
func Boot(t testing.TB) *Machine {
	t.Helper()

	return bootOver(t, Debian(t))
}

// bootOver boots a machine over a read-only file system.
func bootOver(t testing.TB, base string) *Machine {
	t.Helper()
	name := fmt.Sprintf("muster-%d-%d", os.Getpid(), time.Now().UnixNano())
	notices, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@" + name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notices.Close()
	cmd := exec.Command("unshare", append([]string{"--mount", "--propagation", "private", "sh", "-c", boot, "sh", name, base}, cgroups(t, name)...)...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET=@"+name, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	// An interrupt of the terminal is for the test: the machine ends by its input.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		_ = notices.Close()
	}()
	leader := 0
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := awaitEnd(ended, leader, cmd.Process.Pid); err != nil {
			t.Errorf("the machine ended with %v: %s", err, said.String())
		}
	})
	if leader, err = awaitReady(notices); err != nil {
		t.Fatalf("the machine did not boot (is systemd-container installed?): %v", err)
	}

	return &Machine{
		t: t, pid: cmd.Process.Pid,
		enter: []string{"--all", "--target", strconv.Itoa(leader)},
		root:  fmt.Sprintf("/proc/%d/root", leader),
	}
}

// awaitEnd waits until the machine is off, and takes its power away when it
// does not come to that.
func awaitEnd(ended <-chan error, leader, group int) error {
	select {
	case err := <-ended:
		return err
	case <-time.After(bootTime):
	}
	if leader != 0 {
		_ = syscall.Kill(leader, syscall.SIGKILL)
	}
	_ = syscall.Kill(-group, syscall.SIGKILL)

	return errors.Join(fmt.Errorf("no power off within %s", bootTime), <-ended)
}

// awaitReady reads the notices of systemd-nspawn until the machine is up, and returns
// the number of its first process.
func awaitReady(notices *net.UnixConn) (leader int, err error) {
	if err := notices.SetReadDeadline(time.Now().Add(bootTime)); err != nil {
		return 0, err
	}
	ready := false
	buffer := make([]byte, 4096)
	for !ready || leader == 0 {
		n, err := notices.Read(buffer)
		if err != nil {
			return leader, err
		}
		for line := range strings.Lines(string(buffer[:n])) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch key {
			case "READY":
				ready = value == "1"
			case "X_NSPAWN_LEADER_PID":
				if leader, err = strconv.Atoi(value); err != nil {
					return 0, err
				}
			}
		}
	}

	return leader, nil
}

// cgroups returns the places of the machine's own cgroups in the hierarchies that
// systemd uses: two on a host with both versions, else one.
func cgroups(t testing.TB, name string) []string {
	t.Helper()
	const top = "/sys/fs/cgroup"
	var out []string
	for _, dir := range []string{top, top + "/systemd", top + "/unified"} {
		_, err := os.Stat(dir + "/cgroup.procs")
		switch {
		case err == nil:
			out = append(out, dir+"/"+name)
		case !errors.Is(err, fs.ErrNotExist):
			t.Fatal(err)
		}
	}
	if len(out) == 0 {
		t.Fatalf("there is no cgroup hierarchy at %s in which systemd could run", top)
	}

	return out
}
