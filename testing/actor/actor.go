// Package actor lets a test binary play another process, such as one that is killed or that holds a resource.
package actor

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// Variable is the environment variable that makes a test binary play a role.
const Variable = "HOSTTEST_ROLE"

// Main is the TestMain of a package whose binary has roles. A role that returns ends its process; failure
// contains its error.
func Main(m *testing.M, roles map[string]func() error) {
	name := os.Getenv(Variable)
	if name == "" {
		os.Exit(m.Run())
	}
	role := roles[name]
	if role == nil {
		role = func() error { return fmt.Errorf("unknown role %s", name) }
	}
	if err := role(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Ready signals the test that the role has come as far as it wants it.
func Ready() { fmt.Println("ready") }

// Actor is this test binary in another process.
type Actor struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

// Play starts another process in a role and waits until it is ready.
func Play(t testing.TB, role string, args ...string) *Actor {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), Variable+"="+role)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a := &Actor{cmd: cmd, input: input}
	t.Cleanup(func() { a.Kill() })
	if _, err := io.ReadFull(output, make([]byte, len("ready"))); err != nil {
		t.Fatalf("the %s did not get ready: %v", role, err)
	}

	return a
}

// PID returns the number of the process.
func (a *Actor) PID() int { return a.cmd.Process.Pid }

// String returns the number of the process as text.
func (a *Actor) String() string { return strconv.Itoa(a.PID()) }

// Kill kills the process and waits for it.
func (a *Actor) Kill() {
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

// End lets the process come to its end.
func (a *Actor) End(t testing.TB) {
	t.Helper()
	if err := a.input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
