package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/choria-io/fisk"
	shellquote "github.com/kballard/go-shellquote"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/reports"
	"github.com/musterfleet/muster/model"
)

const (
	// demoPatience is how long a step may take before it has failed.
	demoPatience = 30 * time.Second
	// demoInterval is how often the demo's node looks for drift.
	demoInterval = 2 * time.Second
	demoNode     = "demo"
)

func (a *app) addDemo(ctx context.Context, cli *fisk.Application) {
	var once bool
	cmd := cli.Command("demo", "Show the whole of it on an embedded NATS: push, reconcile, report, ensure, drift")
	cmd.HelpLong("Everything happens in a temporary directory and on the loopback interface. The commands that it shows are real: they do the same on any NATS server.")
	cmd.Flag("once", "End after the last step: 0 when each was verified, 1 with the name of the one that was not").UnNegatableBoolVar(&once)
	cmd.Action(a.action(func() error { return a.runDemo(ctx, once) }))
}

// demo is a NATS server, a node and what the steps need to know.
type demo struct {
	a     *app
	dir   string
	url   string
	store *natsStore
	began time.Time
	// digests are those of the runs that were verified.
	digests map[string]bool
	server  *server.Server
	ended   chan error
}

// demoStep is one thing that the demo shows. show does it and gives what was verified.
type demoStep struct {
	title string
	show  func(ctx context.Context) (verified []string, err error)
}

func (a *app) runDemo(ctx context.Context, once bool) (err error) {
	dir, err := os.MkdirTemp("", "muster-demo-")
	if err != nil {
		return err
	}
	d := &demo{a: a, dir: dir, began: time.Now(), digests: map[string]bool{}, ended: make(chan error, 1)}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	node, stop := context.WithCancel(ctx)
	defer d.close(stop)
	steps := d.steps(node)
	for i, s := range steps {
		fmt.Fprintf(a.stdout, "\n%d/%d %s\n", i+1, len(steps), s.title)
		verified, err := s.within(ctx)
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, s.title, err)
		}
		for _, v := range verified {
			fmt.Fprintf(a.stdout, "    ok  %s\n", v)
		}
	}
	fmt.Fprintf(a.stdout, "\nall %d steps verified in %s\n", len(steps), time.Since(d.began).Round(time.Millisecond))
	if once {
		return nil
	}

	return d.linger(ctx)
}

// within runs a step, which fails when it takes too long.
func (s demoStep) within(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, demoPatience, fmt.Errorf("not verified within %s", demoPatience))
	defer cancel()
	verified, err := s.show(ctx)
	if err != nil && context.Cause(ctx) != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}

	return verified, err
}

// linger keeps the fleet of one up and shows its reports, for trying things out.
func (d *demo) linger(ctx context.Context) error {
	fmt.Fprintf(d.a.stdout, "\nThe node goes on until ctrl-C. In another terminal:\n\n  export NATS_URL=%s\n  muster fleet nodes\n  muster fleet ensure exec uptime --node %s\n  echo tampered >> %s\n\nIts reports, as they come:\n", d.url, demoNode, d.path("motd"))
	err := d.command(ctx, "fleet", "reports")
	if ctx.Err() != nil {
		return nil
	}

	return err
}

func (d *demo) path(name string) string { return filepath.Join(d.dir, "site", name) }

// startServer starts NATS on a free port of the loopback interface.
func (d *demo) startServer(context.Context) ([]string, error) {
	s, err := server.NewServer(&server.Options{
		ServerName: "muster-demo", Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true,
		StoreDir: filepath.Join(d.dir, "nats"), NoSigs: true, NoLog: true,
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	d.server = s
	if !s.ReadyForConnections(demoPatience) {
		return nil, errors.New("the embedded nats-server did not come up")
	}
	d.url = s.ClientURL()
	d.a.connect = kvstore.ConnectOptions{Servers: []string{d.url}}
	d.store, err = d.a.store(context.Background())

	return []string{"nats-server " + server.VERSION + " with JetStream on " + d.url}, err
}

// startNode starts an agent; its log goes to a file.
func (d *demo) startNode(ctx context.Context) ([]string, error) {
	file, err := os.Create(filepath.Join(d.dir, "agent.log"))
	if err != nil {
		return nil, err
	}
	config := agent.DefaultConfig(demoNode)
	config.Groups = []string{"web"}
	config.Interval = model.Duration(demoInterval)
	config.StateDir = filepath.Join(d.dir, "state")
	config.FactsDir = filepath.Join(d.dir, "facts")
	config.NATS.Servers = []string{d.url}
	child := &app{stdout: io.Discard, stderr: file, types: d.a.types, log: newLogger(file, "text", "debug")}
	n, err := child.newNode(ctx, config)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	go func() {
		err := n.run(ctx, ctx)
		n.close()
		d.ended <- errors.Join(err, file.Close())
	}()
	if err := d.await(ctx, reports.Filter{Kind: model.KindNode, Outcome: string(model.NodeStarted)}, func(model.Report) bool { return true }); err != nil {
		return nil, err
	}

	return []string{"node " + demoNode + " reported that it started"}, nil
}

// command runs a command of muster, as one would in a terminal.
func (d *demo) command(ctx context.Context, args ...string) error {
	fmt.Fprintf(d.a.stdout, "  $ muster %s\n", shellquote.Join(args...))
	out := &indented{w: d.a.stdout}
	child := &app{stdin: bytes.NewReader(nil), types: d.a.types, stdout: out, stderr: out, interrupted: d.a.interrupted, log: slog.New(slog.DiscardHandler)}
	defer child.close()
	_, err := parse(child.commands(ctx), append([]string{"--server", d.url, "--prefix", kvstore.DefaultPrefix}, args...))
	if err == nil && child.err != nil {
		err = child.err
		if code := child.report(err); code == exitOK {
			err = nil
		}
	}

	return err
}

// await reads reports from the stream until one is what was waited for.
func (d *demo) await(ctx context.Context, f reports.Filter, is func(model.Report) bool) error {
	f.Node, f.Since, f.Follow = demoNode, d.began, true
	for r, err := range d.store.Reports(ctx, f) {
		if err != nil {
			return err
		}
		if is(r) {
			return nil
		}
	}

	return errors.New("the report did not come")
}

func (d *demo) close(stop func()) {
	stop()
	if d.store != nil {
		select {
		case <-d.ended:
		case <-time.After(demoPatience):
		}
	}
	if d.server != nil {
		d.a.close()
		d.a.client = nil
		d.server.Shutdown()
		d.server.WaitForShutdown()
	}
}

// indented puts what a command prints below the command.
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
