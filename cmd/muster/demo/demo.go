// Package demo is muster demo: the main job on an embedded NATS server.
package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/choria-io/fisk"
	shellquote "github.com/kballard/go-shellquote"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/cmd/muster/agentcmd"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/paths"
)

const (
	// patience is how long a step may take before it has failed.
	patience = 30 * time.Second
	// interval is how often the node checks for drift.
	interval = 2 * time.Second
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

// demo is a NATS server, a node and the state of the steps.
type demo struct {
	*cli.Env
	execute Execute
	dir     string
	url     string
	store   *kvstore.Store
	// dashboard is its URL.
	dashboard string
	// once ends the demo after the last step.
	once  bool
	began time.Time
	// digests are the digests of the verified runs.
	digests map[string]bool
	server  *embedded
	// running is the node.
	running sync.WaitGroup
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
	node, stop := context.WithCancel(ctx)
	defer d.close(stop)
	steps := d.steps(node)
	for i, s := range steps {
		d.Print.Printf("\n%d/%d %s\n", i+1, len(steps), s.title)
		verified, err := s.within(ctx)
		if err != nil {
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

	return d.linger(ctx)
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

func (d *demo) path(name string) string { return filepath.Join(d.dir, "site", name) }

// embedded is a nats-server in this process.
type embedded struct {
	url, version string
	// stop ends it, and waits.
	stop func()
}

// startServer starts NATS with the accounts that muster fleet accounts prints.
func (d *demo) startServer(context.Context) ([]string, error) {
	accounts, err := provision.AccountsOf(kvstore.DefaultPrefix)
	if err != nil {
		return nil, err
	}
	config, err := d.serverConfig(accounts)
	if err != nil {
		return nil, err
	}
	if d.server, err = serve(config, d.dir); err != nil {
		return nil, err
	}
	d.url = d.server.url
	d.Flags.Connect = connect.Options{Servers: []string{d.url}, User: adminName, PasswordFile: d.password(adminName)}
	d.store, err = d.Store(context.Background())

	return []string{
		"nats-server " + d.server.version + " with JetStream on " + d.url,
		"two accounts: " + accounts.Fleet.Name + " for streams and administrators, " + accounts.Nodes.Name + " for nodes",
	}, err
}

// serverConfig returns the accounts with their users, as a configuration file has them, and writes down their
// passwords: an administrator has root's rights on the node, and other users of the machine reach the server.
func (d *demo) serverConfig(accounts provision.Accounts) (string, error) {
	allowed, err := provision.NodePermissions(kvstore.DefaultPrefix, nodeName, groups())
	if err != nil {
		return "", err
	}
	passwords := map[string]string{adminName: rand.Text(), nodeName: rand.Text()}
	for user, password := range passwords {
		if err := os.WriteFile(d.password(user), []byte(password), 0o600); err != nil {
			return "", err
		}
	}

	return accounts.ServerConfig(provision.Users{
		accounts.Fleet.Name: {fmt.Sprintf("{user: %s, password: %q}", adminName, passwords[adminName])},
		accounts.Nodes.Name: {fmt.Sprintf("{user: %s, password: %q, %s}", nodeName, passwords[nodeName], allowed.ServerConfig())},
	}), nil
}

// groups are the groups of the node.
func groups() []string { return []string{"web"} }

// password is the file with the password of a user of NATS.
func (d *demo) password(user string) string { return filepath.Join(d.dir, user+".password") }

// startNode starts an agent, until node ends, and simulated nodes beside it. Its log goes to a
// file.
func (d *demo) startNode(ctx, node context.Context) ([]string, error) {
	file, err := os.Create(filepath.Join(d.dir, "agent.log"))
	if err != nil {
		return nil, err
	}
	config := config.Default(nodeName)
	config.Groups = groups()
	config.Interval = model.Duration(interval)
	config.StateDir = filepath.Join(d.dir, "state")
	config.FactsDir = filepath.Join(d.dir, "facts")
	config.NATS.Servers, config.NATS.User, config.NATS.PasswordFile = []string{d.url}, nodeName, d.password(nodeName)
	n, err := agentcmd.NewNode(node, d.Types, print.NewLogger(file, "text", slog.LevelDebug), config)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	d.running.Go(func() {
		err := n.Run(node, node)
		n.Close()
		if err := errors.Join(err, file.Close()); err != nil {
			d.Log.Warn("agent stopped", "error", err)
		}
	})
	if err := d.await(ctx, model.ReportRange{Kind: model.KindNode, Outcome: string(model.NodeStarted)}, func(model.Report) bool { return true }); err != nil {
		return nil, err
	}

	simulated, err := d.simulate(ctx, node)
	if err != nil {
		return nil, err
	}

	return []string{"node " + nodeName + " reported that it started", simulated, "the dashboard shows all of them"}, d.awaitShown(ctx, 1+simulatedNodes)
}

// command runs a command of muster, as one would in a terminal.
func (d *demo) command(ctx context.Context, args ...string) error {
	d.show(args)
	out := &indented{w: d.Print.Out}
	err := d.run(ctx, cli.NewEnv(d.Types, bytes.NewReader(nil), out, out, d.Stop), args)
	cli.Report(out, err)

	return err
}

func (d *demo) show(args []string) { d.Print.Printf("  $ muster %s\n", shellquote.Join(args...)) }

// run runs a command of muster with the server of the demo.
func (d *demo) run(ctx context.Context, env *cli.Env, args []string) error {
	return d.execute(ctx, env, append([]string{"--server", d.url, "--user", adminName, "--password-file", d.password(adminName), "--prefix", kvstore.DefaultPrefix}, args...))
}

// await reads reports from the stream until one matches.
func (d *demo) await(ctx context.Context, f model.ReportRange, is func(model.Report) bool) error {
	f.Node, f.Since, f.Follow = nodeName, d.began, true
	for r, err := range kvstore.NewReports(d.store).Reports(ctx, f) {
		if err != nil {
			return err
		}
		if is(r) {
			return nil
		}
	}

	return errors.New("the report did not arrive")
}

func (d *demo) close(stop func()) {
	stop()
	d.running.Wait()
	if d.server != nil {
		d.Close()
		d.server.stop()
	}
}

// indented indents the output of a command.
type indented struct {
	w      io.Writer
	inLine bool
}

// Write writes b with each line indented.
func (i *indented) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		if !i.inLine {
			line = "    " + line
		}
		i.inLine = !strings.HasSuffix(line, "\n")
		if _, err := io.WriteString(i.w, line); err != nil {
			return 0, err
		}
	}

	return len(b), nil
}
