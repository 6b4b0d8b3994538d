package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/musterfleet/muster/testing/racing"
)

// deadline is how long anything may take here before it counts as hanging.
const deadline = 5 * time.Minute

func TestMain(m *testing.M) {
	if config := os.Getenv(serverVariable); config != "" {
		os.Exit(serve(config))
	}
	dir, err := os.MkdirTemp("", "muster-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Each muster built with -race would wait a second at its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	args := []string{"build", "-o", filepath.Join(dir, "muster")}
	if racing.Enabled {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "github.com/musterfleet/muster/cmd/muster")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building muster: %v\n%s", err, out)
		os.Exit(1)
	}
	if err := os.Setenv("PATH", dir+":"+os.Getenv("PATH")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// process is a muster that was started.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	text output
	done chan error
}

// output stores the output of a running process.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps b.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.text.Write(b)
}

// String returns the output so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.text.String()
}

// start starts muster with a state directory.
func start(t *testing.T, state string, args ...string) *process {
	t.Helper()

	return startReading(t, state, nil, args...)
}

// startReading is start with a standard input.
func startReading(t *testing.T, state string, stdin io.Reader, args ...string) *process {
	t.Helper()

	return startProgram(t, state, stdin, "muster", args...)
}

// startNohup is start with SIGHUP ignored, as by nohup.
func startNohup(t *testing.T, state string, args ...string) *process {
	t.Helper()

	return startProgram(t, state, nil, "/bin/sh", append([]string{"-c", `trap "" HUP; exec muster "$@"`, "sh"}, args...)...)
}

// startProgram starts a program, which the end of the test kills.
func startProgram(t *testing.T, state string, stdin io.Reader, name string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	p := &process{t: t, cmd: exec.CommandContext(ctx, name, args...), done: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), "MUSTER_STATE_DIR="+state, "NATS_URL=nats://127.0.0.1:1")
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, &p.text, &p.text
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()

	return p
}

// wait waits for the end of a process and returns its exit code and output.
func (p *process) wait() (int, string) {
	<-p.done

	return p.cmd.ProcessState.ExitCode(), p.text.String()
}

// signal sends a signal to a process.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// muster runs muster to its end, which must be a success, and returns its output.
func muster(t *testing.T, state string, args ...string) string {
	t.Helper()
	code, text := start(t, state, args...).wait()
	if code != 0 {
		t.Fatalf("%v: exit code %d\n%s", args, code, text)
	}

	return text
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(deadline)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not in time: %s", what)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// write writes a file of a test.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}

	return path
}

// litter gives the temporary files below a directory.
func litter(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), ".muster-") {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return out
}
