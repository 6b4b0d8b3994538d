package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/engine/report"
	"github.com/musterfleet/muster/resources/engine/session"
	"github.com/musterfleet/muster/resources/reconcile"
	"github.com/musterfleet/muster/resources/resource"
)

// envSession is the session that ensure commands share.
const envSession = "MUSTER_SESSION_STORE"

// shutdownTimeout is how long the change in hand may still take after the
// first interrupt.
const shutdownTimeout = time.Minute

// reconciliation is one run at the command line.
type reconciliation struct {
	session   *earlier
	resources []*resource.Resource
	secrets   []model.Secret
	manifest  string
	// journal names the manifest among others to which refreshes are owed; empty is manifest.
	journal string
	// command is what others are told that wait for this run; never the arguments as
	// they were given, which may hold secrets.
	command   string
	digest    string
	scope     resource.Scope
	facts     model.Facts
	stopFirst bool // fail_on_error
	noWait    bool
	diff      bool
	asJSON    bool
	// each gets every transaction; nil logs it.
	each func(*model.Transaction)
}

// reconcile orders the resources, runs them and tells what happened.
func (a *app) reconcile(ctx context.Context, r reconciliation) (*model.Run, error) {
	built, err := graph.Build(r.resources, r.session.known)
	if err != nil {
		return nil, err
	}
	registered := map[model.Ref][]model.RegisterEntry{}
	o := reconcile.Options{
		JournalOf: cmp.Or(r.journal, r.manifest), Command: "muster " + r.command, NoWait: r.noWait,
		Within: strings.FieldsFunc(os.Getenv(engine.EnvRun), func(c rune) bool { return c == ',' }),
	}
	o.Options = engine.Options{
		Identity:    report.Identity{Manifest: r.manifest, Digest: r.digest, Version: version(), Cause: model.CauseCommand},
		FailOnError: r.stopFirst, Checker: checker(a.host()), Secrets: r.secrets, Full: r.asJSON || r.session != nil || r.each != nil,
		Env:           resource.Env{Host: a.host(), Facts: r.facts, Log: a.log, Scope: r.scope},
		OnTransaction: a.onTransaction(ctx, r),
		Register:      func(ref model.Ref, entries []model.RegisterEntry) { registered[ref] = entries },
	}
	if r.session != nil {
		o.Earlier = r.session.history
	}
	if noop(r.scope.Noop) && !r.scope.Noop {
		a.log.Info("running in noop, because the run that started this one does")
		o.Env.Scope.Noop = true
	}
	stop, end := a.untilInterrupted(ctx, o.Env.Scope.Noop)
	defer end()
	if !o.Env.Scope.Noop {
		o.Grace = func(work context.Context) error {
			return cmp.Or(engine.GracePeriod(shutdownTimeout)(until(work, ctx)), context.Cause(ctx))
		}
	}
	run, err := reconcile.Run(stop, built, o)
	if run == nil {
		return nil, err
	}
	if err != nil {
		a.log.Warn("giving up the run lock", "error", err)
	}
	a.register(ctx, registered)

	return run, nil
}

// noop reports whether nothing is changed: that was asked for, or what started
// this muster changes nothing.
func noop(asked bool) bool { return asked || os.Getenv(engine.EnvNoop) != "" }

// until returns a context that ends with either of two.
func until(ctx, other context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(other, cancel)

	return ctx
}

// untilInterrupted returns the context of a run: it ends at the first interrupt.
func (a *app) untilInterrupted(ctx context.Context, noop bool) (stop context.Context, end func()) {
	a.changing.Store(!noop)
	stop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	// A terminal that went away is no reason to leave a change half done.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangups)
		select {
		case <-done:
			return
		case <-ctx.Done():
		case <-hangups:
			a.interrupt()
		case <-a.interrupted:
		}
		if noop {
			a.log.Warn("interrupted, nothing was being changed")
		} else {
			a.log.Warn("stopping after the change in hand; interrupt again to break it off")
		}
		cancel()
	}()

	return stop, func() {
		close(done)
		cancel()
	}
}

// earlier is the session that a command belongs to, with what earlier commands
// of it did; nil outside of a session.
type earlier struct {
	store   *session.Store
	history plan.History
}

// known says that an earlier command of the session had a resource.
func (e *earlier) known(ref model.Ref) bool {
	return e != nil && e.history.Knows(ref)
}

func (a *app) openSession() (*earlier, error) {
	dir := os.Getenv(envSession)
	if dir == "" {
		return nil, nil
	}
	store, err := session.Open(a.host(), dir)
	if err != nil {
		return nil, err
	}
	history, err := store.History()

	return &earlier{store: store, history: history}, err
}

// onTransaction tells of each transaction as it happens.
func (a *app) onTransaction(ctx context.Context, r reconciliation) func(*model.Transaction) {
	return func(t *model.Transaction) {
		if r.session != nil {
			if err := r.session.store.Append(ctx, t); err != nil {
				a.log.Error("storing the transaction in the session", "error", err)
			}
		}
		if r.each != nil {
			r.each(t)
			return
		}
		report.Log(ctx, a.log, t)
		if r.asJSON {
			_ = a.printJSONLine(t) // that it could not is told at the end
			return
		}
		if r.diff {
			a.printChanges(t)
		}
	}
}

func (a *app) printJSONLine(v any) error { return json.NewEncoder(a.stdout).Encode(v) }

// printChanges shows what a plan said, with its diffs.
func (a *app) printChanges(t *model.Transaction) {
	for _, c := range t.Changes {
		if c.Property != "" && c.From != c.To {
			fmt.Fprintf(a.stdout, "  %s %s: %s -> %s\n", printable(t.Ref().String()), c.Property, printable(c.From), printable(c.To))
		}
		if c.Diff == "" {
			continue
		}
		for line := range strings.Lines(c.Diff) {
			fmt.Fprintf(a.stdout, "  %s\n", a.paintDiff(printable(strings.TrimSuffix(line, "\n"))))
		}
	}
}

func (a *app) paintDiff(line string) string {
	if !hasColour(a.stdout) || line == "" {
		return line
	}
	switch line[0] {
	case '+':
		return "\x1b[32m" + line + "\x1b[0m"
	case '-':
		return "\x1b[31m" + line + "\x1b[0m"
	default:
		return line
	}
}

// conclude logs the summary of a run and makes the exit code of it.
func (a *app) conclude(ctx context.Context, run *model.Run, detailed bool) error {
	c := run.Counts
	level := slog.LevelInfo
	if run.Outcome() == model.OutcomeFailed {
		level = slog.LevelError
	}
	attrs := []slog.Attr{slog.String("outcome", string(run.Outcome())), slog.Int("total", c.Total), slog.Int("stable", c.Stable), slog.Int("changed", c.Changed)}
	for _, more := range []struct {
		name  string
		count int
	}{{"refreshed", c.Refreshed}, {"failed", c.Failed}, {"skipped", c.Skipped}, {"unmet", c.Unmet}, {"not_run", c.NotRun},
		{"health_ok", c.HealthChecks.OK}, {"health_warning", c.HealthChecks.Warning}, {"health_critical", c.HealthChecks.Critical}, {"health_unknown", c.HealthChecks.Unknown}} {
		if more.count > 0 {
			attrs = append(attrs, slog.Int(more.name, more.count))
		}
	}
	attrs = append(attrs, slog.Duration("runtime", run.Duration.Round(time.Millisecond)))
	a.log.LogAttrs(ctx, level, "run finished", attrs...)
	failed := !run.OK()
	if failed && c.Failed == 0 && len(run.Errors) > 0 {
		a.log.Error(strings.Join(run.Errors, "; "))
	}

	return exitOf(failed, c.Changed > 0, detailed)
}

// exitOf gives the exit code: 0 or 1, or in detail 2 for changes, 4 for
// failures and 6 for both.
func exitOf(failed, changed, detailed bool) error {
	code := exitOK
	switch {
	case detailed && failed && changed:
		code = 6
	case detailed && failed:
		code = 4
	case detailed && changed:
		code = 2
	case failed:
		code = exitFailed
	}
	if code == exitOK {
		return nil
	}

	return &exitError{code: code}
}
