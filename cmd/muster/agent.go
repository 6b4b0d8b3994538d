package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"syscall"

	"github.com/choria-io/fisk"
	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/facts"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/nats-io/nats.go"
)

// agentCommand is muster agent run.
type agentCommand struct {
	file   string
	node   string
	groups []string
}

func (a *app) addAgent(ctx context.Context, cli *fisk.Application) {
	c := &agentCommand{}
	parent := cli.Command("agent", "Run this machine as a node of a fleet")
	run := parent.Command("run", "Keep this machine in the state that the fleet's bucket assigns to it")
	run.HelpLong("The configuration is agent.yaml in the configuration directory; muster agent config prints one. Flags win over it. SIGHUP reads it again, SIGTERM finishes the change in hand and ends, a second one breaks it off.")
	run.Flag("config", "The configuration").PlaceHolder("FILE").StringVar(&c.file)
	run.Flag("node", "Id of this node").PlaceHolder("NAME").StringVar(&c.node)
	run.Flag("group", "A group this node is in; may be given several times").PlaceHolder("NAME").StringsVar(&c.groups)
	run.Action(a.action(unlessNoop(func() error { return a.runAgent(ctx, c) })))
	config := parent.Command("config", "Print the default configuration, with a comment for each key")
	config.Action(a.action(func() error {
		text, err := agent.ExampleConfig(agent.DefaultConfig(hostname()))
		if err != nil {
			return err
		}
		_, err = a.stdout.Write(text)
		return err
	}))
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}

	return name
}

// config reads the configuration, with the flags over it.
func (a *app) config(c *agentCommand) (agent.Config, error) {
	path, named := c.file, c.file != ""
	if !named {
		path = filepath.Join(a.configDir, "agent.yaml")
	}
	text, err := files.Read(path, manifest.DefaultMaxBytes)
	if err != nil && (named || !errors.Is(err, fs.ErrNotExist)) {
		return agent.Config{}, err
	}
	config, err := agent.ParseConfig(path, text, hostname())
	if err != nil {
		return config, err
	}
	if c.node != "" {
		config.Node = c.node
	}
	if len(c.groups) > 0 {
		config.Groups = c.groups
	}
	a.overrideConfig(&config)

	if err := config.Validate().Err(); err != nil {
		// The file was valid, what stands over it is not.
		return config, &exitError{code: exitUsage, err: err}
	}

	return config, nil
}

// overrideConfig puts the global flags over what the file says.
func (a *app) overrideConfig(config *agent.Config) {
	set := func(target *string, value string) {
		if value != "" {
			*target = value
		}
	}
	if a.stateDirSet || os.Getenv(engine.EnvState) != "" {
		config.StateDir = a.stateDir
	}
	// The environment is that of whoever starts the agent: it only counts where
	// the file says nothing of NATS at all.
	if slices.Contains(a.connectSet[:], true) || reflect.DeepEqual(config.NATS, agent.DefaultConfig("").NATS) {
		set(&config.NATS.Context, a.connect.Context)
		set(&config.NATS.Creds, a.connect.Creds)
		set(&config.NATS.NKey, a.connect.NKey)
		set(&config.NATS.TLSCA, a.connect.TLSCA)
		set(&config.NATS.TLSCert, a.connect.TLSCert)
		set(&config.NATS.TLSKey, a.connect.TLSKey)
		if len(a.connect.Servers) > 0 {
			config.NATS.Servers = a.connect.Servers
		}
	}
	if a.prefixSet || os.Getenv(envPrefix) != "" {
		config.Prefix = a.prefix
	}
	if a.logFormatSet || os.Getenv(envLogFormat) != "" {
		config.Log.Format = a.logFormat
	}
	if a.logLevelSet || os.Getenv(envLogLevel) != "" {
		config.Log.Level = a.logLevel
	}
}

// runAgent is the agent until it is told to end.
func (a *app) runAgent(ctx context.Context, c *agentCommand) error {
	config, err := a.config(c)
	if err != nil {
		return err
	}
	level := &slog.LevelVar{}
	setLevel(level, config.Log.Level)
	a.setLog(newLeveledLogger(a.stderr, config.Log.Format, level))
	node, err := a.newNode(ctx, config)
	if err != nil {
		return err
	}
	defer node.close()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	a.changing.Store(true)
	running, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for {
			select {
			case <-hangups:
				a.reloadAgent(running, c, node, level)
			case <-a.interrupted:
				stop()
				return
			case <-running.Done():
				return
			}
		}
	}()

	return node.run(running, ctx)
}

// reloadAgent reads the configuration again; a wrong one changes nothing.
func (a *app) reloadAgent(ctx context.Context, c *agentCommand, n *node, level *slog.LevelVar) {
	config, err := a.config(c)
	var applied []string
	if err == nil {
		applied, _, err = n.agent.Reload(ctx, config)
	}
	if err != nil {
		a.log.ErrorContext(ctx, "the configuration is refused, the old one stays", "error", err)
		return
	}
	setLevel(level, config.Log.Level)
	if slices.Contains(applied, "groups") {
		n.service.regroup()
	}
}

func setLevel(v *slog.LevelVar, name string) {
	var level slog.Level
	// The configuration was validated: slog knows the name.
	_ = level.UnmarshalText([]byte(name))
	v.Set(level)
}

// node is an agent with its connection.
type node struct {
	agent   *agent.Agent
	service *nodeService
	nc      *nats.Conn
}

// newNode wires an agent to NATS. A server that is away is no error.
func (a *app) newNode(ctx context.Context, config agent.Config) (*node, error) {
	names, err := kvstore.NewNames(config.Prefix)
	if err != nil {
		return nil, err
	}
	n := &node{}
	connected := make(chan struct{}, 1)
	options := kvstore.ConnectOptions{
		Context: config.NATS.Context, Servers: config.NATS.Servers, Creds: config.NATS.Creds, NKey: config.NATS.NKey,
		TLSCA: config.NATS.TLSCA, TLSCert: config.NATS.TLSCert, TLSKey: config.NATS.TLSKey,
		Name: "muster agent " + config.Node, InboxPrefix: names.InboxPrefix(config.Node), RetryOnFailedConnect: true,
		OnStatus: (&connectionLog{log: a.log, connected: connected, told: map[string]bool{}}).tell,
	}
	if n.nc, err = kvstore.Dial(ctx, options); err != nil {
		return nil, err
	}
	store, err := kvstore.New(n.nc, config.Prefix)
	if err != nil {
		n.nc.Close()
		return nil, err
	}
	a.client, a.theHost = nil, host.New(host.Options{StateDir: config.StateDir, Log: a.log})
	a.stateDir = config.StateDir
	n.agent, err = agent.New(ctx, a.agentOptions(config, newNATSStore(store)))
	if err != nil {
		n.nc.Close()
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w (run it as root, or give it a directory of its own with --state-dir)", err)
		}
		return nil, err
	}
	n.service = &nodeService{agent: n.agent, store: newNATSStore(store), connected: connected, regrouped: make(chan struct{}, 1), log: a.log}

	return n, nil
}

// connectionLog logs what happens to a connection, and wakes who waits for it.
type connectionLog struct {
	log       *slog.Logger
	connected chan<- struct{}
	// told is what was refused since the connection was made, each once.
	told map[string]bool
}

func (l *connectionLog) tell(s kvstore.ConnectionStatus) {
	switch {
	case errors.Is(s.Err, nats.ErrPermissionViolation):
		if !l.told[s.Err.Error()] {
			l.told[s.Err.Error()] = true
			l.log.Warn("NATS does not permit the node all it needs, see muster fleet permissions", "error", s.Err)
		}
	case s.Err != nil:
		l.log.Warn("NATS", "error", s.Err)
	case s.Connected:
		clear(l.told)
		l.log.Info("connected to NATS", "server", s.Server)
		select {
		case l.connected <- struct{}{}:
		default:
		}
	default:
		l.log.Warn("not connected to NATS")
	}
}

func (a *app) agentOptions(config agent.Config, store *natsStore) agent.Options {
	loader := a.nodeLoader(config, store)

	return agent.Options{
		Config: config, Version: version(), Host: a.theHost, Log: a.log, Loader: loader, Origin: loader.Origin,
		Assignments: watch.NewNode(store.Store, watch.Options{Node: config.Node, Groups: config.Groups, Log: a.log}, seen{host: a.theHost, log: a.log}),
		Registry:    store,
		Checker:     checker(a.theHost),
		Bundles:     store,
		Publisher:   store,
		States:      store,
		Facts: func(ctx context.Context, dir string) (model.Facts, []error) {
			return facts.Gather(ctx, facts.Options{Dir: dir})
		},
		StableFacts: facts.Digest,
	}
}

// run is the agent and what answers requests for it, until ctx ends; the end of
// hard breaks the change in hand off.
func (n *node) run(ctx, hard context.Context) error {
	serving, stop := context.WithCancel(ctx)
	var served sync.WaitGroup
	served.Go(func() { n.service.run(serving) })
	err := n.agent.Run(ctx, hard)
	stop()
	served.Wait()

	return err
}

func (n *node) close() { n.nc.Close() }

// nodeLoader resolves manifests for an agent, which is away from NATS at times.
func (a *app) nodeLoader(config agent.Config, store *natsStore) *manifest.Loader {
	return manifest.NewLoader(manifest.Options{
		Types: a.types, Environ: environ(), MaxBytes: int64(config.ReadFileLimit),
		KV: agent.ObserveKV(store.KVGet), Object: store.Object, Unpack: a.unpackForRun,
		Registrations: agent.ObserveRegistrations(a.readRegistrations(func(context.Context) (*natsStore, error) { return store, nil })),
	})
}
