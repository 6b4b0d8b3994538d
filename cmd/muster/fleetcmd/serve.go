package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/serve"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/fleet/webhook"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
)

// serveCommand implements muster fleet serve.
type serveCommand struct {
	*cli.Env
	access AccessFlags
	listen string
	keep   time.Duration
	// webhooks is the file of webhooks, or empty.
	webhooks string
	// actions enables actions of operators; signPreviews signs their previews.
	actions, signPreviews bool
	Signing
}

// AddServe adds muster fleet serve.
func AddServe(env *cli.Env, parent *fisk.CmdClause) {
	c := &serveCommand{Env: env}
	cmd := parent.Command("serve", "Serve a dashboard of the fleet")
	cmd.HelpLong("Follows the states and reports of nodes, and serves them over HTTP until ctrl-C. It needs no files and no database, because it reads everything from NATS at its start. Several can run at the same time.\n\n  muster fleet serve\n  muster fleet serve --listen 127.0.0.1:9000 --for-history 72h")
	cmd.Flag("listen", "Address to serve at; beyond loopback it needs --tls-cert, and --tokens or --oidc-issuer").Default("127.0.0.1:8420").PlaceHolder("ADDRESS:PORT").StringVar(&c.listen)
	cmd.Flag("for-history", "Retain and show this much history").Default("24h").PlaceHolder("DURATION").DurationVar(&c.keep)
	cmd.Flag("webhooks", "File of webhooks that receive reports as CloudEvents").PlaceHolder("FILE").StringVar(&c.webhooks)
	cmd.Flag("actions", "Let users with the role operate pause, resume, run and preview nodes (previews run guards); needs --tokens or --oidc-issuer").UnNegatableBoolVar(&c.actions)
	cmd.Flag("sign-previews", "With --actions, also sign previews with --sign-key; users with the role operate can then run any command on nodes that trust the key").UnNegatableBoolVar(&c.signPreviews)
	c.AddSigning(cmd)
	c.access.Add(cmd)
	cmd.Action(env.Action(c.run))
}

// gcPercent is the garbage collection target, in percent of the live heap.
const gcPercent = 50

// Limits of --for-history.
const (
	minKeep = time.Hour
	maxKeep = 31 * 24 * time.Hour
)

func (c *serveCommand) run(ctx context.Context) error {
	if c.keep < minKeep || c.keep > maxKeep {
		return cli.Usagef("--for-history must be between %s and %s", minKeep, maxKeep)
	}
	options := c.access.Options(c.listen)
	if err := options.Validate(); err != nil {
		return cli.Usagef("%w", err)
	}
	if c.actions && !options.SignsIn() {
		return cli.Usagef("--actions needs sign-in: give --tokens FILE or --oidc-issuer URL")
	}
	signer, err := c.Open(c.Env)
	if err != nil {
		return err
	}
	if c.signPreviews && (!c.actions || signer == nil) {
		return cli.Usagef("--sign-previews needs --actions and --sign-key FILE")
	}
	guard, err := access.New(options, c.Log)
	if err != nil {
		return err
	}
	hooks, err := c.readWebhooks()
	if err != nil {
		return err
	}
	defer hooks.Close()
	store, err := Open(ctx, c.Env, NeedNodes, NeedManifests, NeedReports)
	if err != nil {
		return err
	}
	stream := kvstore.NewReports(store.KV)
	if err := hooks.Check(stream); err != nil {
		return cli.Usagef("--webhooks: %w", err)
	}
	l, err := guard.Listen(ctx, serve.MaxConnections)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	// Most of the heap is long-lived, so limit the garbage more than the default does.
	debug.SetGCPercent(gcPercent)
	o := serve.Options{
		Store: serve.Store{
			Connection: store.KV, Nodes: kvstore.NewNodes(store.KV), Assignments: kvstore.NewAssignments(store.KV), Reports: stream,
			Control: kvstore.NewControl(store.KV), Registrations: kvstore.NewRegistrations(store.KV), Storage: requests.New(store.KV),
		},
		Keep: c.keep, Webhooks: hooks, Version: cli.Version(), Log: c.Log,
	}
	if c.actions {
		o.Backend = func(paused func(node string) string) ask.Backend {
			return backend{store: store.KV, signer: signer, signsPreviews: c.signPreviews, log: c.Log, paused: paused, permitted: newPermitted(store.KV)}
		}
	}
	c.Print.Printf("%s\n", guard.URL(l))
	err = serve.Run(ctx, l, guard, o)
	if errors.Is(context.Cause(ctx), cli.ErrInterrupted) {
		return nil
	}

	return err
}

// maxWebhooksFile is the maximum size of the file of webhooks.
const maxWebhooksFile = 1 << 20

// readWebhooks reads the file of --webhooks. Other users must not be able to change the file, because it
// decides who receives the reports.
func (c *serveCommand) readWebhooks() (*webhook.Webhooks, error) {
	if c.webhooks == "" {
		return webhook.NewWebhooks("", nil)
	}
	data, err := files.ReadTrusted(c.webhooks, maxWebhooksFile, paths.Author{})
	if err != nil {
		return nil, cli.Usagef("--webhooks: %w", cli.FileError("file of webhooks", c.webhooks, err))
	}

	return webhook.NewWebhooks(c.webhooks, data)
}
