package chaos

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/testing/hosttest"
)

// process is this program in a role.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  *hosttest.LogText
	done chan struct{}
}

// start starts a program in the role that its environment names.
func start(t *testing.T, log *hosttest.LogText, program string, attr *syscall.SysProcAttr, env ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(program), log: log, done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), append(env, "GORACE=atexit_sleep_ms=0")...)
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	attr.Pdeathsig = syscall.SIGKILL // should the test be killed
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = log, log, attr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // who ends it looks at the state
	}()
	t.Cleanup(p.kill)

	return p
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// signal sends a signal to the process, which must run.
func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("signal %s: %v", s, err)
	}
}

// kill ends the process at once. It accepts ended processes.
func (p *process) kill() {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("kill: %v", err)
	}
	<-p.done
}

// terminate has the process shut down, which must succeed.
func (p *process) terminate() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	<-p.done
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("it ended with %s\n%s", p.cmd.ProcessState, tail(p.log.String()))
	}
}

// tail returns the end of a log.
func tail(text string) string {
	const most = 12 << 10
	if len(text) > most {
		text = text[len(text)-most:]
		text = text[strings.IndexByte(text, '\n')+1:]
	}

	return text
}
