// Package servecmd holds muster fleet serve: it keeps a view of the fleet up to date, and serves
// it over HTTP.
package servecmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore/nodes"
)

// serveCommand is muster fleet serve.
type serveCommand struct {
	*cli.Env
	listen string
	keep   time.Duration
}

// Add adds muster fleet serve.
func Add(env *cli.Env, parent *fisk.CmdClause) {
	c := &serveCommand{Env: env}
	cmd := parent.Command("serve", "Serve a dashboard of the fleet")
	cmd.HelpLong("Follows what nodes store and report, and serves it over HTTP until ctrl-C. It keeps no files and needs no database: what it shows is read from NATS when it starts. Several can run at the same time.\n\n  muster fleet serve\n  muster fleet serve --listen 127.0.0.1:9000 --for-history 72h")
	cmd.Flag("listen", "Loopback address to serve at").Default("127.0.0.1:8420").PlaceHolder("ADDRESS:PORT").StringVar(&c.listen)
	cmd.Flag("for-history", "How far back it shows what happened").Default("24h").PlaceHolder("DURATION").DurationVar(&c.keep)
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
	if err := checkAddress(c.listen); err != nil {
		return err
	}
	store, err := fleetcli.Open(ctx, c.Env)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	// Most of the memory is what stays: less of it may be garbage.
	debug.SetGCPercent(gcPercent)
	model := view.New(view.Options{Version: cli.Version(), Keep: c.keep, Facts: nodes.New(store.KV).Facts})
	running, stop := context.WithCancelCause(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer stop(nil)
	following.Go(func() { model.Run(running) })
	following.Go(func() { stop(newFeed(store.KV, model, c.keep, c.Log).run(running)) })
	c.Print.Printf("http://%s/\n", l.Addr())
	err = serve(running, l, newHandler(model, source{store.KV, c.Log}), c.Log)
	if errors.Is(context.Cause(ctx), cli.ErrInterrupted) {
		return nil
	}

	return err
}

// checkAddress refuses all but loopback addresses: whoever reaches it sees everything.
func checkAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return cli.Usagef("--listen %s: write ADDRESS:PORT, for example 127.0.0.1:8420", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return cli.Usagef("--listen %s: only loopback addresses such as 127.0.0.1 are served: others need TLS and tokens, put a proxy that has them in front", address)
	}

	return nil
}
