package localcmd

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// shutdownTimeout is how long the pending change may take after the first
// interrupt.
const shutdownTimeout = time.Minute

// reconciliation is one run at the command line. Command in its options is shown to other runs that wait for this one;
// it contains no arguments, which may be secrets.
type reconciliation struct {
	engine.ReconcileOptions
	session   *sessionContext
	resources []*resource.Resource
	// journal is the name of the manifest in the journal of pending refreshes.
	journal string
	diff    bool
	// each gets every transaction; nil logs it.
	each func(*model.Transaction)
}

// runner runs the resources of a command. Its fields are the flags of a run.
type runner struct {
	*cli.Env
	diff, asJSON, noWait, detailed bool
}

func (c *runner) addFlags(cmd *fisk.CmdClause, diff, document string) {
	cmd.Flag("diff", diff).BoolVar(&c.diff)
	cmd.Flag("json", document).UnNegatableBoolVar(&c.asJSON)
	cmd.Flag("no-wait", "Fail if another run holds the lock").UnNegatableBoolVar(&c.noWait)
	cmd.Flag("detailed-exitcodes", "Exit 2 for changes, 4 for failures, 6 for both").UnNegatableBoolVar(&c.detailed)
}

// reconcile orders the resources, runs them and reports each.
func (c *runner) reconcile(ctx context.Context, r reconciliation) (*model.Run, error) {
	built, err := plan.Build(r.resources, r.session.known)
	if err != nil {
		return nil, err
	}
	registered, o := map[model.Ref][]model.RegisterEntry{}, r.ReconcileOptions
	o.NoWait, o.StartedBy = c.noWait, strings.FieldsFunc(os.Getenv(engine.EnvRun), func(c rune) bool { return c == ',' })
	o.Version, o.Cause, o.Checker = cli.Version(), model.CauseCommand, cli.Checker(c.Host())
	o.Full = c.asJSON || r.session != nil || r.each != nil
	o.Env.Host, o.Env.Log = c.Host(), c.Log
	o.OnTransaction = c.onTransaction(ctx, r)
	o.Register = func(ref model.Ref, entries []model.RegisterEntry) { registered[ref] = entries }
	// Noop also reads the pending refreshes, to predict what a run does.
	o.Journal = engine.NewFileJournal(c.Host(), c.Host().StateDir(), r.journal)
	if r.session != nil {
		o.Prior = r.session.history
	}
	if noop := o.Env.Scope.Noop; cli.Noop(noop) && !noop {
		c.Log.Info(engine.EnvNoop + " is set, nothing is changed")
		o.Env.Scope.Noop = true
	}
	var begun atomic.Bool
	o.Locked = func(_ context.Context, o engine.ReconcileOptions) (*plan.Graph, engine.Options, error) {
		begun.Store(true)
		return built, o.Options, nil
	}
	stop, end := c.untilInterrupted(ctx, o.Env.Scope.Noop, begun.Load)
	defer end()
	if !o.Env.Scope.Noop {
		o.Grace = func(work context.Context) error {
			return cmp.Or(engine.GracePeriod(shutdownTimeout)(until(work, ctx)), context.Cause(ctx))
		}
	}
	run, err := engine.Reconcile(stop, built, o)
	if run == nil {
		return nil, err
	}
	if err != nil {
		c.Log.Warn("cannot release the run lock", "error", err)
	}
	c.register(ctx, registered)

	return run, nil
}

// until returns a context that ends with either of two.
func until(ctx, other context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(other, cancel)

	return ctx
}

// untilInterrupted returns the context of a run: it ends at the first interrupt.
// begun reports whether the run has the lock, and so may have something to finish.
func (c *runner) untilInterrupted(ctx context.Context, noop bool, begun func() bool) (stop context.Context, end func()) {
	c.Stop.Finish(!noop)
	stop, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-stop.Done():
			return
		case <-ctx.Done():
		case <-c.Stop.Requested():
		}
		switch {
		case noop:
			c.Log.Warn("interrupted, no changes made")
		case begun():
			c.Log.Warn("shutting down after the pending change; interrupt again to abort it", "timeout", shutdownTimeout)
		}
		cancel(cli.ErrInterrupted)
	})

	return stop, func() {
		cancel(nil)
		watching.Wait()
	}
}

// onTransaction reports each transaction as it happens.
func (c *runner) onTransaction(ctx context.Context, r reconciliation) func(*model.Transaction) {
	return func(t *model.Transaction) {
		if r.session != nil {
			if err := r.session.store.Append(ctx, t); err != nil {
				c.Log.Error("cannot store the transaction in the session", "error", err)
			}
		}
		if r.each != nil {
			r.each(t)
			return
		}
		engine.LogTransaction(ctx, c.Log, t)
		if c.asJSON {
			_ = c.Print.JSONLine(t) // main reports an error
			return
		}
		if r.diff {
			c.Print.Changes(t)
		}
	}
}

// conclude logs the summary of a run and returns its exit code.
func (c *runner) conclude(ctx context.Context, run *model.Run) error {
	counts := run.Counts
	level := slog.LevelInfo
	if run.Outcome() == model.OutcomeFailed {
		level = slog.LevelError
	}
	attrs := []slog.Attr{slog.String("outcome", string(run.Outcome())), slog.Int("total", counts.Total), slog.Int("stable", counts.Stable), slog.Int("changed", counts.Made())}
	for _, more := range []struct {
		name  string
		count int
	}{{"would_change", counts.Noop}, {"refreshed", counts.Refreshed}, {"failed", counts.Failed}, {"skipped", counts.Skipped}, {"unmet", counts.Unmet}, {"not_run", counts.NotRun},
		{"health_ok", counts.HealthChecks.OK}, {"health_warning", counts.HealthChecks.Warning}, {"health_critical", counts.HealthChecks.Critical}, {"health_unknown", counts.HealthChecks.Unknown}} {
		if more.count > 0 {
			attrs = append(attrs, slog.Int(more.name, more.count))
		}
	}
	attrs = append(attrs, slog.Duration("runtime", run.Duration.Round(time.Millisecond)))
	c.Log.LogAttrs(ctx, level, "run finished", attrs...)
	failed := !run.OK()
	if failed && counts.Failed == 0 && len(run.Errors) > 0 {
		c.Log.Error(strings.Join(run.Errors, "; "))
	}

	return exitOf(failed, counts.Changed > 0, c.detailed)
}

// exitOf returns the exit code: 0 or 1, or in detail 2 for changes, 4 for failures
// and 6 for both.
func exitOf(failed, changed, detailed bool) error {
	code := cli.ExitOK
	switch {
	case detailed && failed && changed:
		code = 6
	case detailed && failed:
		code = 4
	case detailed && changed:
		code = 2
	case failed:
		code = cli.ExitFailed
	}
	if code == cli.ExitOK {
		return nil
	}

	return &cli.ExitError{Code: code}
}

// register publishes what the resources of a run registered, once: nothing renews
// it after a command. A failure is logged, and fails nothing.
func (c *runner) register(ctx context.Context, registered map[model.Ref][]model.RegisterEntry) {
	var entries []model.RegisterEntry
	for _, some := range registered {
		entries = append(entries, some...)
	}
	switch {
	case len(entries) == 0:
		return
	case !c.NamesNATS():
		c.Log.Info("nothing registered, no NATS server is given", "entries", len(entries))
		return
	}
	store, err := c.Store(ctx)
	if err != nil {
		c.Log.Warn("nothing registered", "error", c.ConnectHint(err))
		return
	}
	node := config.Default(cli.Hostname()).Node
	for _, e := range entries {
		if err := kvstore.NewRegistrations(store).Register(ctx, registration.Of(e, node)); err != nil {
			c.Log.Warn("service not registered", "service", e.Service, "cluster", e.Cluster, "error", err)
		}
	}
}
