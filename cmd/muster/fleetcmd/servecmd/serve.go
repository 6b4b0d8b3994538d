// Package servecmd holds muster fleet serve: it keeps a view of the fleet up to date, and serves
// it over HTTP.
package servecmd

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/kvstore"
)

// serveCommand is muster fleet serve.
type serveCommand struct {
	*cli.Env
	access fleetcmd.AccessFlags
	listen string
	keep   time.Duration
	// webhooks is the file of webhooks, empty for none.
	webhooks string
	// actions lets operators act, signPreviews has what they preview signed.
	actions, signPreviews bool
	fleetcmd.Signing
}

// Add adds muster fleet serve.
func Add(env *cli.Env, parent *fisk.CmdClause) {
	c := &serveCommand{Env: env}
	cmd := parent.Command("serve", "Serve a dashboard of the fleet")
	cmd.HelpLong("Follows the states and reports of nodes, and serves them over HTTP until ctrl-C. It needs no files and no database, because it reads everything from NATS at its start. Several can run at the same time.\n\n  muster fleet serve\n  muster fleet serve --listen 127.0.0.1:9000 --for-history 72h")
	cmd.Flag("listen", "Address to serve at; beyond loopback it needs --tls-cert, and --tokens or --oidc-issuer").Default("127.0.0.1:8420").PlaceHolder("ADDRESS:PORT").StringVar(&c.listen)
	cmd.Flag("for-history", "How far back it shows what happened").Default("24h").PlaceHolder("DURATION").DurationVar(&c.keep)
	cmd.Flag("webhooks", "File of webhooks that receive reports as CloudEvents").PlaceHolder("FILE").StringVar(&c.webhooks)
	cmd.Flag("actions", "Let users with the role operate pause, resume, run and preview nodes (previews run guards); needs --tokens or --oidc-issuer").UnNegatableBoolVar(&c.actions)
	cmd.Flag("sign-previews", "With --actions, also sign previews with --sign-key; users with the role operate can then run any command on nodes that trust the key").UnNegatableBoolVar(&c.signPreviews)
	c.AddSigning(cmd)
	c.access.Add(cmd)
	cmd.Action(env.Action(c.run))
}

// gcPercent is how much garbage there may be, in percent of what is in use.
const gcPercent = 50

// The bounds of --for-history.
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
		return cli.Usagef("--actions: whoever acts must sign in, give --tokens FILE or --oidc-issuer URL")
	}
	signer, err := c.Open(c.Env)
	if err != nil {
		return err
	}
	if c.signPreviews && (!c.actions || signer == nil) {
		return cli.Usagef("--sign-previews: give --actions and --sign-key FILE, too")
	}
	guard, err := access.New(options, c.Log)
	if err != nil {
		return err
	}
	hooks, err := loadWebhooks(c.webhooks)
	if err != nil {
		return err
	}
	defer hooks.close()
	store, err := fleetcmd.Open(ctx, c.Env, fleetcmd.NeedNodes, fleetcmd.NeedManifests, fleetcmd.NeedReports)
	if err != nil {
		return err
	}
	if err := hooks.check(kvstore.NewReports(store.KV)); err != nil {
		return err
	}
	l, err := guard.Listen(ctx, maxConnections)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	// Most of the memory is what stays: less of it may be garbage.
	debug.SetGCPercent(gcPercent)
	running, stop := context.WithCancelCause(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer stop(nil)
	fleet := &follower{store: store.KV, keep: c.keep, look: streamPause, webhooks: hooks, acts: c.actions, signer: signer, signsPreviews: c.signPreviews, log: c.Log, begun: make(chan struct{})}
	following.Go(func() { stop(fleet.run(running)) })
	c.Print.Printf("%s\n", guard.URL(l))
	err = serve(running, l, guard.Handler(fleet), defaultPatience(), c.Log)
	if errors.Is(context.Cause(ctx), cli.ErrInterrupted) {
		return nil
	}

	return err
}
