package host_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host"
)

// roleVariable makes this test binary play another process.
const roleVariable = "HOSTTEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case "writer":
		playWriter()
	case "holder":
		playHolder()
	case "runner":
		playRunner()
	default:
		fmt.Fprintln(os.Stderr, "unknown role", role)
		os.Exit(2)
	}
}

// playWriter begins a run and writes a file whose content never ends, saying
// "ready" once its temporary file has some of it.
func playWriter() {
	h := host.New(host.Options{StateDir: os.Args[1]})
	if err := h.BeginRun(context.Background(), host.RunOptions{}); err != nil {
		fail(err)
	}
	content := io.MultiReader(strings.NewReader(strings.Repeat("x", 9<<20)), saying{}, os.Stdin)
	fail(h.Write(context.Background(), os.Args[2], content, host.Attrs{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Mode: 0o644}))
}

// saying is read after all that stands before it was written.
type saying struct{}

func (saying) Read([]byte) (int, error) {
	fmt.Println("ready")

	return 0, io.EOF
}

// playHolder takes the run lock and keeps it until its input ends.
func playHolder() {
	h := host.New(host.Options{StateDir: os.Args[1]})
	unlock, err := h.Lock(context.Background(), host.LockOptions{Holder: host.LockHolder{Command: "muster apply", RunID: "run1"}})
	if err != nil {
		fail(err)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := unlock(); err != nil {
		fail(err)
	}
}

// playRunner runs a command without end, tied to this process.
func playRunner() {
	ready := func(string, bool) { fmt.Println("ready") }
	_, err := host.New(host.Options{}).Run(context.Background(), host.Command{Argv: os.Args[1:], Tied: true, OnLine: ready})
	fail(err)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// actor is this test binary in another process.
type actor struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

// play starts another process in a role and waits until it is ready.
func play(t *testing.T, role string, args ...string) *actor {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
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
	a := &actor{cmd: cmd, input: input}
	t.Cleanup(func() { a.kill() })
	if _, err := io.ReadFull(output, make([]byte, len("ready"))); err != nil {
		t.Fatalf("the %s did not get ready: %v", role, err)
	}

	return a
}

func (a *actor) kill() {
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

// end lets the process come to its end.
func (a *actor) end(t *testing.T) {
	t.Helper()
	if err := a.input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
