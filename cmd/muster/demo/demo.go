// Package demo implements muster demo, a guided tour on an embedded NATS server.
package demo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/choria-io/fisk"
	shellquote "github.com/kballard/go-shellquote"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/resources/host/paths"
)

const (
	// patience is the maximum time of a step.
	patience = 30 * time.Second
	nodeName = "demo"
	// adminName is the NATS user with all permissions.
	adminName = "admin"
)

// Execute runs a command line of muster in an environment.
type Execute func(ctx context.Context, env *cli.Env, args []string) error

// Add adds the command to the command line.
func Add(env *cli.Env, app *fisk.Application, execute Execute) {
	var once bool
	cmd := app.Command("demo", "Run a guided demo on an embedded NATS server: push, reconcile, report, ensure, drift")
	cmd.HelpLong("The demo uses a temporary directory and the loopback interface. It runs a NATS server, a node, 25 simulated nodes and a dashboard, and prints the address of the dashboard. On a terminal it then runs until ctrl-C or until the terminal closes. The commands that it shows work the same on any NATS server.")
	cmd.Flag("once", "Exit after the last step, with 1 if a step fails").UnNegatableBoolVar(&once)
	cmd.Action(env.Action(func(ctx context.Context) error { return run(ctx, env, execute, once) }))
}

// demo is a NATS server, the commands that run in the background, and the state of the steps.
type demo struct {
	*cli.Env
	execute Execute
	dir     string
	store   *kvstore.Store
	// dashboard is its URL.
	dashboard string
	// once ends the demo after the last step.
	once  bool
	began time.Time
	// digests are the digests of the verified runs.
	digests map[string]bool
	server  *embedded
	// background is the context of the commands in the background. fail ends the demo when one of them fails.
	background context.Context
	fail       context.CancelCauseFunc
	running    sync.WaitGroup
}

// step is one part of the demo. show runs it and returns a description of the verified result.
type step struct {
	title string
	show  func(ctx context.Context) (verified []string, err error)
}

func run(ctx context.Context, env *cli.Env, execute Execute, once bool) (err error) {
	if err := forgetFleet(&env.Flags); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "muster-demo-")
	if err != nil {
		return err
	}
	// Without a terminal no user can end the demo.
	once = once || !print.IsTerminal(env.Print.Out)
	d := &demo{Env: env, execute: execute, dir: dir, once: once, began: time.Now(), digests: map[string]bool{}}
	defer func() { err = errors.Join(err, paths.RemoveTree(context.WithoutCancel(ctx), dir)) }()
	interrupted := ctx
	ctx, d.fail = context.WithCancelCause(ctx)
	defer d.fail(nil)
	background, stop := context.WithCancel(ctx)
	d.background = background
	defer d.close(stop)
	steps := d.steps()
	for i, s := range steps {
		d.Print.Printf("\n%d/%d %s\n", i+1, len(steps), s.title)
		verified, err := s.within(ctx)
		switch {
		case err != nil && interrupted.Err() != nil:
			return context.Cause(interrupted)
		case err != nil:
			return fmt.Errorf("step %d, %s: %w", i+1, s.title, err)
		}
		for _, v := range verified {
			d.Print.Printf("    ok  %s\n", v)
		}
	}
	d.Print.Printf("\nall %d steps verified in %s\n", len(steps), time.Since(d.began).Round(time.Millisecond))
	if once {
		return nil
	}
	err = d.linger(ctx)
	if interrupted.Err() != nil {
		return nil
	}

	return errors.Join(context.Cause(ctx), err)
}

// forgetFleet removes the environment variables and flag defaults of any other fleet.
func forgetFleet(f *cli.Flags) error {
	f.Prefix = kvstore.DefaultPrefix
	var errs []error
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		isLog := name == cli.EnvLogLevel || name == cli.EnvLogFormat
		if !isLog && (strings.HasPrefix(name, "NATS_") || strings.HasPrefix(name, "MUSTER_")) {
			errs = append(errs, os.Unsetenv(name))
		}
	}

	return errors.Join(errs...)
}

// within runs a step, which fails when it takes too long.
func (s step) within(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not verified within %s", patience))
	defer cancel()
	verified, err := s.show(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}

	return verified, err
}

// linger runs the demo until ctx ends. It prints what to try, and then the changes of the node.
func (d *demo) linger(ctx context.Context) error {
	d.Print.Printf("\nThe demo runs until ctrl-C. Open the dashboard in a browser:\n\n  %s\n", d.dashboard)
	d.Print.Printf("\nTry it in another terminal (go install ./cmd/muster installs muster):\n\n  export NATS_URL=%s NATS_USER=%s NATS_PASSWORD_FILE=%s\n  muster fleet nodes\n  muster fleet exec --node %s -- uptime\n  echo tampered >> %s\n", d.server.url, adminName, d.password(adminName), nodeName, d.path("motd"))
	d.Print.Printf("\nThe reports, live: changes of the node %s. The dashboard shows all nodes.\n", nodeName)

	return d.commandTo(ctx, &indented{w: d.Print.Out, dashboard: d.dashboard, omit: stableRun}, "fleet", "reports", "--follow", "--node", nodeName, "--since", "0s")
}

// path returns the path of a file that the node manages.
func (d *demo) path(name string) string { return filepath.Join(d.dir, "site", name) }

// password returns the path of the file with the password of a NATS user.
func (d *demo) password(user string) string { return filepath.Join(d.dir, user+".password") }

// command runs a command of muster and prints its output, as in a terminal.
func (d *demo) command(ctx context.Context, args ...string) error {
	return d.commandTo(ctx, &indented{w: d.Print.Out}, args...)
}

func (d *demo) commandTo(ctx context.Context, out *indented, args ...string) error {
	d.show(args)
	err := d.run(ctx, cli.NewEnv(d.Types, bytes.NewReader(nil), out, out, d.Stop), adminName, args)
	cli.Report(out, err)

	return err
}

// start runs a command of muster until the demo ends. Its log goes to a file. The first line of its output
// arrives in the returned channel.
func (d *demo) start(user, name string, args ...string) (<-chan string, error) {
	log, err := os.Create(filepath.Join(d.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	line := make(firstLine, 1)
	d.running.Go(func() {
		// The demo passes no signals to the command.
		err := d.run(d.background, cli.NewEnv(d.Types, bytes.NewReader(nil), line, log, cli.NewInterrupt()), user, args)
		if err = errors.Join(err, log.Close()); d.background.Err() == nil {
			d.fail(fmt.Errorf("muster %s ended: %w", name, cmp.Or(err, errors.New("no error"))))
		}
	})

	return line, nil
}

// startShown starts a command, and prints the command and the first line of its output.
func (d *demo) startShown(ctx context.Context, name string, args ...string) (first string, err error) {
	d.show(args)
	line, err := d.start(adminName, name, args...)
	if err != nil {
		return "", err
	}
	select {
	case first = <-line:
		d.Print.Printf("    %s\n", first)
		return first, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (d *demo) show(args []string) { d.Print.Printf("  $ muster %s\n", shellquote.Join(args...)) }

// run runs a command of muster with the server of the demo.
func (d *demo) run(ctx context.Context, env *cli.Env, user string, args []string) error {
	return d.execute(ctx, env, append([]string{"--server", d.server.url, "--user", user, "--password-file", d.password(user), "--prefix", kvstore.DefaultPrefix}, args...))
}

func (d *demo) close(stop func()) {
	stop()
	d.running.Wait()
	if d.server != nil {
		d.Close()
		d.server.stop()
	}
}

// firstLine receives the first line that is written to it. A write has whole lines.
type firstLine chan string

// Write sends the first line.
func (f firstLine) Write(b []byte) (int, error) {
	select {
	case f <- strings.TrimSpace(string(b)):
	default:
	}

	return len(b), nil
}

// linesPerAddress is the number of output lines after which the address of the dashboard is repeated.
const linesPerAddress = 6

// stableRun matches the report of a run without changes.
var stableRun = regexp.MustCompile(`^\S+ \S+ \S+ +\S+ +run +stable `)

// indented indents the output of a command. It repeats the address of the dashboard, unless that is empty. It omits
// lines that match omit, unless that is nil.
type indented struct {
	omit      *regexp.Regexp
	w         io.Writer
	dashboard string
	inLine    bool
	lines     int
}

// Write writes b with each line indented.
func (i *indented) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		if i.omit != nil && !i.inLine && i.omit.MatchString(line) {
			continue
		}
		if !i.inLine {
			line = "    " + line
		}
		i.inLine = !strings.HasSuffix(line, "\n")
		if !i.inLine && i.dashboard != "" {
			if i.lines++; i.lines%linesPerAddress == 0 {
				line += "    dashboard: " + i.dashboard + "\n"
			}
		}
		if _, err := io.WriteString(i.w, line); err != nil {
			return 0, err
		}
	}

	return len(b), nil
}
