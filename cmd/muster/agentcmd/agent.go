// Package agentcmd implements muster agent. It connects an agent to NATS.
package agentcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/choria-io/fisk"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/drift"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/facts"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/state"
	hostwatch "github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/host/writers"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// runCommand implements muster agent run.
type runCommand struct {
	*cli.Env
	file   string
	node   string
	groups []string
	goal   status.Goal
}

// Add adds the muster agent commands.
func Add(env *cli.Env, app *fisk.Application) {
	c := &runCommand{Env: env}
	parent := app.Command("agent", "Run this machine as a node of a fleet")
	run := parent.Command("run", "Apply the manifests that the fleet assigns to this machine, continuously")
	run.HelpLong("The configuration is agent.yaml in the configuration directory; muster agent config prints one. Flags override it. SIGHUP reloads it, SIGTERM finishes the pending change and exits, a second SIGTERM aborts the change.")
	run.Flag("config", "Configuration file").PlaceHolder("FILE").StringVar(&c.file)
	cli.NodeVar(run.Flag("node", "Node id").PlaceHolder("NAME"), &c.node)
	run.Flag("group", "Group of this node; repeatable").PlaceHolder("NAME").StringsVar(&c.groups)
	run.Flag("once", "Run each assigned manifest once, and exit").UnNegatableBoolVar(&c.goal.Once)
	run.Flag("converged-timeout", "Exit after this long without a change").PlaceHolder("DURATION").DurationVar(&c.goal.Quiet)
	run.Action(env.Action(cli.UnlessNoop(c.run)))
	addCheck(env, parent)
	addStatus(env, parent)
	example := parent.Command("config", "Print the default configuration, with a comment for each key")
	example.Action(env.Action(func(context.Context) error {
		text, err := config.Example(c.defaults())
		if err != nil {
			return err
		}
		_, err = env.Print.Out.Write(text)
		return err
	}))
}

func (c *runCommand) path() string {
	return cmp.Or(c.file, filepath.Join(c.Flags.ConfigDir, "agent.yaml"))
}

// defaults returns the default configuration. Facts are in the configuration directory.
func (c *runCommand) defaults() config.Config {
	out := config.Default(cli.Hostname())
	if dir, err := filepath.Abs(c.Flags.ConfigDir); err == nil {
		out.FactsDir = dir
	}

	return out
}

func (c *runCommand) config() (agent.Config, error) {
	path, named := c.path(), c.file != ""
	text, err := files.ReadTrusted(path, manifest.DefaultMaxBytes, paths.Author{})
	if err != nil && (named || !errors.Is(err, fs.ErrNotExist)) {
		return agent.Config{}, cli.FileError("configuration", path, err)
	}
	config, err := config.Parse(path, text, c.defaults())
	if err != nil {
		return config, err
	}
	if c.node != "" {
		config.Node = c.node
	}
	if len(c.groups) > 0 {
		config.Groups = c.groups
	}
	c.overrideConfig(&config)
	if config.NATS.User != "" && config.NATS.PasswordFile == "" {
		return config, cli.Usagef("an agent reads the password of user %s from a file: give NATS_PASSWORD_FILE or --password-file", config.NATS.User)
	}
	if err := ofFlags(config.Validate()).Err(); err != nil {
		// The file is valid, so a flag or variable is not.
		return config, &cli.ExitError{Code: cli.ExitUsage, Err: err}
	}

	return config, nil
}

func (c *runCommand) overrideConfig(out *agent.Config) {
	set := func(target *string, value string, wins bool) {
		if wins {
			*target = value
		}
	}
	set(&out.StateDir, c.Flags.StateDir, c.Given("state-dir") || os.Getenv(engine.EnvState) != "")
	set(&out.Prefix, c.Flags.Prefix, c.Given("prefix") || os.Getenv(cli.EnvPrefix) != "")
	set(&out.Log.Format, c.Flags.LogFormat, c.Given("log-format") || os.Getenv(cli.EnvLogFormat) != "")
	set(&out.Log.Level, c.Flags.LogLevel, c.Given("log-level") || os.Getenv(cli.EnvLogLevel) != "")
	// NATS variables come from the environment of the user who starts the agent. They count only if the file
	// has no NATS settings.
	if !c.Given(cli.ConnectFlags[:]...) && !reflect.DeepEqual(out.NATS, config.Default("").NATS) {
		return
	}
	flags := c.Flags.Connect
	set(&out.NATS.Context, flags.Context, flags.Context != "")
	set(&out.NATS.Creds, flags.Creds, flags.Creds != "")
	set(&out.NATS.NKey, flags.NKey, flags.NKey != "")
	set(&out.NATS.User, flags.User, flags.User != "")
	set(&out.NATS.PasswordFile, flags.PasswordFile, flags.PasswordFile != "")
	set(&out.NATS.TLSCA, flags.TLSCA, flags.TLSCA != "")
	set(&out.NATS.TLSCert, flags.TLSCert, flags.TLSCert != "")
	set(&out.NATS.TLSKey, flags.TLSKey, flags.TLSKey != "")
	set(&out.NATS.APIPrefix, flags.APIPrefix, flags.APIPrefix != "")
	if len(flags.Servers) > 0 {
		out.NATS.Servers = flags.Servers
	}
}

// run runs the agent until an interrupt.
func (c *runCommand) run(ctx context.Context) error {
	switch quiet := c.Given("converged-timeout"); {
	case quiet && c.goal.Once:
		return cli.Usagef("give either --once or --converged-timeout, not both")
	case quiet && c.goal.Quiet <= 0:
		return cli.Usagef("--converged-timeout %s: must be above 0", c.goal.Quiet)
	}
	host.SetUmask()
	config, err := c.config()
	if err != nil {
		return err
	}
	level := &slog.LevelVar{}
	level.Set(print.Level(config.Log.Level))
	c.SetLog(print.NewServiceLogger(c.Print.Err, config.Log.Format, level))
	if _, err := os.Lstat(c.path()); errors.Is(err, fs.ErrNotExist) {
		c.Log.Info("no configuration file: flags, environment variables and defaults apply", "file", c.path())
	}
	node, err := NewNode(ctx, config, NodeOptions{Types: c.Types, Log: c.Log, Level: level, Goal: c.goal})
	if err != nil {
		return err
	}
	defer node.Close()
	hangups, stopHangups := c.Stop.Hangups()
	defer stopHangups()
	running, stop := c.Stop.Gentle(ctx)
	var signals sync.WaitGroup
	defer signals.Wait()
	defer stop()
	signals.Go(func() {
		for {
			select {
			case <-hangups:
				c.reload(running, node, level)
			case <-running.Done():
				return
			}
		}
	})

	err = node.Run(running, ctx)
	if errors.Is(err, status.ErrUnconverged) {
		return &cli.ExitError{Code: cli.ExitFailed, Err: err, Note: "some resources are not in the desired state"}
	}

	return err
}

// reload reads the configuration again. An invalid configuration changes nothing.
func (c *runCommand) reload(ctx context.Context, n *Node, level *slog.LevelVar) {
	defer n.supervisor.Reloading()()
	config, err := c.config()
	var applied []string
	if err == nil {
		applied, _, err = n.agent.Reload(ctx, config)
	}
	if err != nil {
		n.agent.RejectConfig(ctx, err)
		return
	}
	level.Set(print.Level(config.Log.Level))
	if slices.Contains(applied, "groups") {
		n.nameGroups()
		n.groupsChanged.Notify()
	}
}

func (n *Node) nameGroups() {
	config := n.agent.Config()
	n.store.Denials.OfNode(kvstore.PermissionsCommand(config.Node, config.Groups))
}

// Node is an agent with its connection.
type Node struct {
	agent      *agent.Agent
	supervisor *agent.Supervisor
	store      *kvstore.Store
	log        *slog.Logger
	// connected and groupsChanged signal a new connection, and a change of the node's groups.
	connected, groupsChanged tasks.Signal
	// closers release resources, in reverse order.
	closers []func() error
}

// NodeOptions configure a Node.
type NodeOptions struct {
	Types resource.Types
	Log   *slog.Logger
	// Level is the log level, which administrators can change; nil means info.
	Level *slog.LevelVar
	// Goal is the condition on which the agent exits.
	Goal status.Goal
}

// NewNode claims the state directory and connects an agent to NATS. An unreachable server is not an error.
func NewNode(ctx context.Context, config agent.Config, o NodeOptions) (_ *Node, err error) {
	if _, err := kvstore.NewNames(config.Prefix); err != nil {
		return nil, err
	}
	causes := &kvstore.LoggedCause{}
	log := slog.New(kvstore.CauseHandler{Handler: o.Log.Handler(), Logged: causes})
	n := &Node{log: log, connected: tasks.NewSignal(), groupsChanged: tasks.NewSignal()}
	if n.supervisor, err = agent.NewSupervisor(ctx, config.StateDir, log, cmp.Or(o.Level, &slog.LevelVar{})); err != nil {
		return nil, err
	}
	n.closers = append(n.closers, n.supervisor.Close)
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	reach := reachOf(config.NATS)
	connection := newConnectionLog(log, n.connected, reach, causes)
	n.supervisor.ShowConnection, n.supervisor.ConnectionChanged = connection.shown.Describe, connection.shown.changed
	reach.Options.Name, reach.InboxPrefix, reach.RetryOnFailedConnect = "muster agent "+config.Node, kvstore.InboxPrefix(config.Node), true
	reach.OnStatus = connection.status
	for _, exposed := range reach.Exposed() {
		log.WarnContext(ctx, "secret readable by others", "error", reach.Named(exposed))
	}
	if n.store, err = kvstore.Open(ctx, reach.Options, config.Prefix); err != nil {
		return nil, reach.Named(err)
	}
	watcher := hostwatch.New(log)
	n.closers = append(n.closers, func() error {
		watcher.Close()
		n.store.Conn.Close()
		connection.close()
		return nil
	})
	a := options(o.Types, log, config, n.store, watcher)
	a.GroupsChanged = func() {
		n.nameGroups()
		n.groupsChanged.Notify()
	}
	a.Supervisor, a.Connection, a.Away, a.Goal = n.supervisor, connection.shown.last, connection.whyAway, o.Goal
	n.agent, err = agent.New(ctx, a)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) && !errors.Is(err, state.ErrDenied) {
			err = fmt.Errorf("%w (%w)", err, state.ErrDenied)
		}
		return nil, err
	}
	n.nameGroups()

	return n, nil
}

func options(types resource.Types, log *slog.Logger, config agent.Config, store *kvstore.Store, watcher *hostwatch.Watcher) agent.Options {
	machine := host.New(host.Options{StateDir: config.StateDir, Log: log})
	loader := manifest.NewLoader(manifest.Options{
		Types: types, Environ: cli.Environ(),
		KV: desired.ObserveKV(kvstore.NewContent(store).KVGet), Object: kvstore.NewContent(store).Object,
		Unpack: cli.UnpackForRun(machine), MaxBytes: int64(config.ReadFileLimit),
		Registrations: desired.ObserveRegistrations(cli.Registrations(log, func(context.Context) (*kvstore.Store, error) { return store, nil })),
	})

	return agent.Options{
		Config: config, Version: cli.Version(), Host: machine, Log: log, Loader: loader,
		Assignments:  watch.New(store, watch.Options{Node: config.Node, Groups: config.Groups, Log: log}),
		Control:      watch.NewControl(store, watch.Options{Node: config.Node, Groups: config.Groups, Log: log}),
		Registry:     kvstore.NewRegistrations(store),
		Watch:        watcher.Arm,
		Writers:      listen,
		Checker:      cli.Checker(machine),
		Bundles:      kvstore.NewContent(store),
		Publisher:    kvstore.NewReports(store),
		States:       kvstore.NewNodes(store),
		Packages:     status.Machine{Root: "/", Run: machine.Run},
		PutInventory: kvstore.NewNodes(store).PutInventory,
		Facts: func(ctx context.Context, dir string) (model.Facts, string, []error) {
			all, failed := facts.Gather(ctx, facts.Options{Dir: dir})
			return all, facts.Digest(all), failed
		},
	}
}

// Run runs the agent and answers requests until ctx ends. The end of hard aborts the pending change. Run
// returns an error if the NATS client gave up the connection.
func (n *Node) Run(ctx, hard context.Context) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	var gaveUp error
	retry := tasks.NewSignal()
	all.Go(func() { n.noteConnections(running, retry) })
	all.Go(func() { n.serve(running, retry) })
	all.Go(func() { n.warnOfNeighbours(running) })
	all.Go(func() {
		if gaveUp = n.awaitClosed(running); gaveUp != nil {
			stop()
		}
	})
	err := n.agent.Run(running, hard)
	stop()
	all.Wait()

	return cmp.Or(err, gaveUp)
}

// noteConnections makes the agent retry all waiting work after each new connection, and notifies retry.
func (n *Node) noteConnections(ctx context.Context, retry tasks.Signal) {
	for {
		select {
		case <-n.connected:
			n.agent.Connected()
			retry.Notify()
		case <-ctx.Done():
			return
		}
	}
}

// serveRetry is the wait between two attempts to answer requests. A new connection ends it.
const serveRetry = 5 * time.Second

// serve answers requests and handles queued ones until ctx ends. It starts again after an error, because NATS may
// be unreachable at any time, and with the new groups of the node after they changed.
func (n *Node) serve(ctx context.Context, retry tasks.Signal) {
	service, previews := n.agent.Requests(), n.agent.Previews()
	for ctx.Err() == nil {
		config := n.agent.Config()
		o := requests.ServeOptions{
			Node: config.Node, Groups: config.Groups, Version: cli.Version(), Log: n.log,
			Ensure: service.Ensure, Run: service.Run, Preview: previews.Preview,
			Status: guarded(n.log, "status", func(ctx context.Context, request []byte) (any, error) { return service.Status(ctx, request) }),
			Facts:  guarded(n.log, "facts", func(ctx context.Context, _ []byte) (any, error) { return n.agent.Facts(ctx) }),
			Ping:   guarded(n.log, "ping", func(context.Context, []byte) (any, error) { return n.agent.State(), nil }),
		}
		err := requests.New(n.store).ServeAll(ctx, n.groupsChanged, o, func(ctx context.Context, c requests.Command) error {
			if c.Refused != nil {
				service.Refuse(ctx, c.ID, c.Refused)
				return nil
			}
			return service.Command(ctx, c.Sender, c.ID, c.Data)
		})
		if err != nil {
			n.log.WarnContext(ctx, "cannot answer requests, will retry", "error", err)
			tasks.Pause(ctx, serveRetry, retry)
		}
	}
}

// guarded turns a panic into an error, because a request must not end the agent.
func guarded(log *slog.Logger, verb string, answer requests.Answer) requests.Answer {
	return func(ctx context.Context, request []byte) (out any, err error) {
		err = tasks.Guard(log, "answering a request for "+verb, func() (err error) {
			out, err = answer(ctx, request)
			return err
		})
		return out, err
	}
}

func listen(ctx context.Context, paths []string) (drift.Writers, error) {
	l, err := writers.Listen(ctx, paths)
	if err != nil {
		return nil, err // not a non-nil interface with a nil pointer
	}

	return l, nil
}

// awaitClosed waits until ctx ends or the client closed the connection for good. In the latter case it logs
// the error, and the agent must be restarted.
func (n *Node) awaitClosed(ctx context.Context) error {
	nc := n.store.Conn
	closed := nc.StatusChanged(nats.CLOSED)
	defer nc.RemoveStatusListener(closed)
	if !nc.IsClosed() {
		select {
		case <-closed:
		case <-ctx.Done():
			return nil
		}
	}
	n.log.ErrorContext(ctx, "connection to NATS closed for good, ending to be started again", "error", cli.Plain(cmp.Or(nc.LastError(), nats.ErrConnectionClosed)))

	return &cli.ExitError{Code: cli.ExitFailed}
}

// warnOfNeighbours warns once if the node is a user of the account with the streams. In that account a node
// can make the server publish in the name of another node.
func (n *Node) warnOfNeighbours(ctx context.Context) {
	select {
	case <-n.store.API.Located():
	case <-ctx.Done():
		return
	}
	if n.store.API.InUse().IsOwn() {
		n.log.WarnContext(ctx, cli.OneAccount)
	}
}

// Close closes the connection and the socket, and releases the state directory.
func (n *Node) Close() {
	for _, end := range slices.Backward(n.closers) {
		if err := end(); err != nil {
			n.log.Warn("cleanup failed", "error", err)
		}
	}
	n.closers = nil
}
