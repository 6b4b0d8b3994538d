//go:build system

package rigs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/testing/hosttest"
)

// Machine is a Debian of a test's own. Everything it has beyond the Debian it
// was made from is gone with the test.
type Machine struct {
	t testing.TB
	// pid is a process that sees the machine's file system below root, and the written files below up.
	pid int
	// enter are the arguments of nsenter that lead into the machine.
	enter []string
	// root is the machine's file system as this process sees it.
	root string
}

// The machine's place in its mount namespace.
const (
	work = "/mnt"
	root = work + "/root"
	up   = work + "/up"
)

// searchPath is the PATH of what runs in a machine.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// overlay makes a file system in memory over the Debian at $base.
const overlay = `mount -t tmpfs -o mode=755 tmpfs ` + work + `
mkdir ` + up + ` ` + work + `/work ` + root + `
mount -t overlay overlay -o "lowerdir=$base,upperdir=` + up + `,workdir=` + work + `/work" ` + root

// enter makes the machine in new namespaces, reports it, and holds them until its input ends, at the latest
// at the end of the test's process.
const enter = `set -e
base=$1
` + overlay + `
mount -t proc -o ro proc ` + root + `/proc
mount -t tmpfs -o mode=755 tmpfs ` + root + `/dev
for device in null zero full random urandom tty; do
  : > ` + root + `/dev/$device
  mount --bind /dev/$device ` + root + `/dev/$device
done
ln -s /proc/self/fd ` + root + `/dev/fd
ip link set lo up 2>/dev/null || true
echo ready
exec cat`

// New makes a machine, without any network. It ends with the test.
func New(t testing.TB) *Machine {
	t.Helper()

	return over(t, Debian(t))
}

// over makes a machine over a read-only file system.
func over(t testing.TB, base string) *Machine {
	t.Helper()
	cmd := exec.Command("unshare", "--mount", "--net", "--propagation", "private", "sh", "-c", enter, "sh", base)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_, _ = io.Copy(io.Discard, stdout)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the machine ended with %v: %s", err, complaints.String())
		}
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the machine did not start (%v): %s", err, complaints.String())
	}

	pid := strconv.Itoa(cmd.Process.Pid)

	return &Machine{
		t: t, pid: cmd.Process.Pid,
		enter: []string{"--mount", "--net", "--target", pid, "chroot", root},
		root:  "/proc/" + pid + "/root" + root,
	}
}

// Result is the result of a command.
type Result struct {
	Code           int
	Stdout, Stderr string
	// CPU is the time of processors that it took, with all that it started and waited for.
	CPU time.Duration
}

// commandTime limits each command in a machine. The limit of "go test" covers all tests of a
// package and would end waiting tests on a busy machine.
const commandTime = 10 * time.Minute

// Run runs a command in the machine and waits until it ends. It fails the test when the
// command cannot be started or takes longer than commandTime.
func (m *Machine) Run(args ...string) Result {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", append(slices.Clone(m.enter), args...)...)
	cmd.Env = []string{"PATH=" + searchPath, "HOME=/root", "LANG=C.UTF-8"}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// Processes that the command started may still hold its output.
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		m.t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), ctx.Err(), stdout.String(), stderr.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}

	state := cmd.ProcessState

	return Result{Code: state.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String(), CPU: state.UserTime() + state.SystemTime()}
}

// Copy copies a file or directory from the host into the machine.
func (m *Machine) Copy(from, to string) {
	m.t.Helper()
	target := filepath.Join(m.root, to)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if out, err := exec.CommandContext(m.t.Context(), "cp", "-r", from, target).CombinedOutput(); err != nil {
		m.t.Fatalf("copying %s: %v: %s", from, err, out)
	}
}

// Changes lists all differences from the original Debian, including touched files. Two equal lists prove that
// nothing changed in between.
func (m *Machine) Changes() hosttest.Tree {
	m.t.Helper()

	return hosttest.Snapshot(m.t, fmt.Sprintf("/proc/%d/root%s", m.pid, up))
}

// Root is the machine's file system as this process sees it.
func (m *Machine) Root() string { return m.root }

// Lend puts programs of the machine into the PATH of this process until the end
// of the test: whatever starts one of them acts on the machine. The result gives
// the calls since it was last asked, program and arguments.
func (m *Machine) Lend(programs ...string) (calls func() []string) {
	m.t.Helper()
	dir := m.t.TempDir()
	log := filepath.Join(dir, "calls")
	for _, program := range programs {
		script := fmt.Sprintf("#!/bin/sh\necho \"%s $*\" >> '%s'\nexec nsenter %s env PATH=%s %s \"$@\"\n",
			program, log, strings.Join(m.enter, " "), searchPath, program)
		if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
	m.t.Setenv("PATH", dir+":"+os.Getenv("PATH"))

	return func() []string {
		m.t.Helper()
		text, err := os.ReadFile(log)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = os.Remove(log)
		}
		if err != nil {
			m.t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
}
