package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/resource"
)

// The environment of muster's own settings, which win over a configuration file.
const (
	envLogLevel  = "MUSTER_LOG_LEVEL"
	envLogFormat = "MUSTER_LOG_FORMAT"
	envPrefix    = "MUSTER_PREFIX"
)

// app is what the commands share: where they read and write, the global flags,
// and what is made of them when a command needs it.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// interrupted is closed when somebody wants muster to end.
	interrupted   chan struct{}
	interruptOnce sync.Once
	// changing says that an interrupt must let a change come to its end.
	changing atomic.Bool
	ran      bool
	err      error

	logLevel, logFormat string
	stateDir, configDir string
	// What the user set wins over an agent's configuration; a default does not.
	stateDirSet, prefixSet, logFormatSet, logLevelSet bool
	connectSet                                        [7]bool // the flags that say how to connect
	connect                                           kvstore.ConnectOptions
	prefix                                            string

	log     *slog.Logger
	types   resource.Types
	theHost *host.Host
	client  *client
}

// commands declares the command line.
func (a *app) commands(ctx context.Context) *fisk.Application {
	cli := fisk.New("muster", "Keeps machines in their desired state, one of them or a fleet, over NATS")
	// A value such as @reboot is that value, not the name of a file of arguments.
	fisk.EnableFileExpansion = false
	cli.Version(version())
	cli.Writer(unfailing{a.stdout})
	cli.UsageWriter(unfailing{a.stdout})
	cli.ErrorWriter(unfailing{a.stderr})
	cli.HelpFlag.Short('h')
	a.addGlobals(cli)
	a.addApply(ctx, cli)
	a.addGraph(ctx, cli)
	a.addEnsure(ctx, cli)
	a.addStatus(ctx, cli)
	a.addFacts(ctx, cli)
	a.addData(ctx, cli)
	a.addSchema(cli)
	a.addSession(ctx, cli)
	a.addAgent(ctx, cli)
	a.addFleet(ctx, cli)
	a.addRegistration(ctx, cli)
	a.addDemo(ctx, cli)
	a.addVersion(cli)
	a.addGoss(cli)
	a.addRender(cli)

	return cli
}

func (a *app) addGlobals(cli *fisk.Application) {
	cli.Flag("log-level", "Least level that is logged").Default("info").Envar(envLogLevel).IsSetByUser(&a.logLevelSet).EnumVar(&a.logLevel, "debug", "info", "warn", "error")
	cli.Flag("log-format", "Form of the log").Default("text").Envar(envLogFormat).IsSetByUser(&a.logFormatSet).EnumVar(&a.logFormat, "text", "json")
	cli.Flag("state-dir", "Where the node's lock, journal and copies are kept").Default(defaultStateDir()).Envar(engine.EnvState).IsSetByUser(&a.stateDirSet).PlaceHolder("DIR").StringVar(&a.stateDir)
	cli.Flag("config-dir", "Where facts.yaml, facts.d and agent.yaml are").Default("/etc/muster").Envar("MUSTER_CONFIG_DIR").PlaceHolder("DIR").StringVar(&a.configDir)
	cli.Flag("context", "NATS context to connect with").Envar("NATS_CONTEXT").IsSetByUser(&a.connectSet[0]).PlaceHolder("NAME").StringVar(&a.connect.Context)
	cli.Flag("server", "NATS server; may be given several times, or comma separated").Short('s').Envar("NATS_URL").IsSetByUser(&a.connectSet[1]).PlaceHolder("URL").StringsVar(&a.connect.Servers)
	cli.Flag("creds", "NATS credentials file").Envar("NATS_CREDS").IsSetByUser(&a.connectSet[2]).PlaceHolder("FILE").StringVar(&a.connect.Creds)
	cli.Flag("nkey", "NATS nkey seed file").Envar("NATS_NKEY").IsSetByUser(&a.connectSet[3]).PlaceHolder("FILE").StringVar(&a.connect.NKey)
	cli.Flag("tlsca", "Certificate authority of the NATS servers").Envar("NATS_CA").IsSetByUser(&a.connectSet[4]).PlaceHolder("FILE").StringVar(&a.connect.TLSCA)
	cli.Flag("tlscert", "TLS certificate to connect with").Envar("NATS_CERT").IsSetByUser(&a.connectSet[5]).PlaceHolder("FILE").StringVar(&a.connect.TLSCert)
	cli.Flag("tlskey", "Key of the TLS certificate").Envar("NATS_KEY").IsSetByUser(&a.connectSet[6]).PlaceHolder("FILE").StringVar(&a.connect.TLSKey)
	cli.Flag("prefix", "What names the fleet's buckets, streams and subjects").Default("muster").Envar(envPrefix).IsSetByUser(&a.prefixSet).PlaceHolder("NAME").StringVar(&a.prefix)
	cli.PreAction(func(c *fisk.ParseContext) error {
		a.setLog(newLogger(a.stderr, a.logFormat, a.logLevel))
		return checkForms(c)
	})
}

// defaultStateDir is the node's for root, and the user's own for everyone else.
func defaultStateDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/muster"
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "muster")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "muster-state")
	}

	return filepath.Join(home, ".local", "state", "muster")
}

// host gives the machine.
func (a *app) host() *host.Host {
	if a.theHost == nil {
		a.theHost = host.New(host.Options{StateDir: a.stateDir, Log: a.log})
	}

	return a.theHost
}

// close ends what was opened on the way.
func (a *app) close() {
	if a.client != nil {
		a.client.close()
	}
}
