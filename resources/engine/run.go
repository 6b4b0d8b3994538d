package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/segmentio/ksuid"
)

// The variables by which a muster that a command of a run starts knows of the run.
const (
	// EnvRun are the ids of the runs it belongs to, outermost first, with commas between them.
	EnvRun = "MUSTER_RUN"
	// EnvState is the state directory of the run, where its lock is.
	EnvState = "MUSTER_STATE_DIR"
	// EnvNoop is there when it must not change anything: the resource that the
	// command is for is not changed either.
	EnvNoop = "MUSTER_NOOP"
)

// Journal keeps the refreshes that a manifest's resources are owed, across
// runs and kills.
type Journal interface {
	// Owe is durable when it returns.
	Owe(ctx context.Context, to ...model.Ref) error
	// Settle strikes a debt out.
	Settle(ctx context.Context, to model.Ref) error
	// Owed gives what is owed from earlier runs. Its error wraps ErrJournalDamaged
	// when nobody can know that any more.
	Owed() ([]model.Ref, error)
	// Reset makes these all that is owed, whatever the journal held.
	Reset(ctx context.Context, owed ...model.Ref) error
}

// Checker makes health checks; *health.Checker is one.
type Checker interface {
	// CheckAll gives what came of checks, in their order; one that was broken off
	// because ctx ended has no status. env is added to the environment of their
	// commands.
	CheckAll(ctx context.Context, checks []model.HealthCheck, env []string) []model.HealthResult
}

// Options are what a run is told.
type Options struct {
	// Env is handed to the types. Its Scope says whether this is noop; its log
	// must be set. RunID and RunEnv are the engine's.
	Env resource.Env
	// Manifest names what runs; Revision and Digest say which version of it.
	Manifest      string
	Revision      uint64
	Digest        string
	Node          string
	Version       string
	Cause         model.Cause
	CorrelationID string
	// RunID is a KSUID; empty makes one.
	RunID string
	// FailOnError stops the run at the first resource that fails.
	FailOnError bool
	// Checker makes health checks; without it one that a resource has is unknown.
	Checker Checker
	// Refresh are resources to be refreshed because a health check of them is critical.
	Refresh []model.Ref
	// Register is told what the resources that register themselves have to say:
	// their entries while they are in their state, none when they are not. It is
	// not called in noop, nor for a resource that the run did not come to.
	Register func(ref model.Ref, entries []model.RegisterEntry)
	// Journal keeps owed refreshes; nil means that they do not outlive the run.
	Journal Journal
	// Earlier is what the earlier commands of the session did.
	Earlier History
	// Stop, when closed, ends the run after the change in hand; the rest is not run,
	// and what changes nothing is broken off.
	Stop <-chan struct{}
	// Full puts properties and status into the transactions of stable resources too.
	Full bool
	// Secrets are redacted from everything the run says, besides those of the resources.
	Secrets []model.Secret
	// Parents are the ids of the runs that this one belongs to, outermost first: the
	// processes of those hold the run lock and keep the host's record of litter.
	Parents []string
	// ReadAll reads all content anew, whatever is remembered of it.
	ReadAll bool
	// OnTransaction gets each transaction as it is made, in the order of the graph.
	OnTransaction func(*model.Transaction)
	// Admit says whether resources of a manifest that is read during the run may be
	// part of it; nil says that of all. Its error may be model.Problems.
	Admit func([]*resource.Resource) error
	// Woken is when the wake-up came that led to this run, for the latency of repairs.
	Woken time.Time
}

// run is one run of a graph.
type run struct {
	graph   *Graph
	opts    Options
	eras    eras
	looks   []look
	results []result
	owed    map[model.Ref]bool
	lent    []model.Ref // who was not owed anything before the changes in hand
	unknown bool        // whom earlier runs left unpaid is not known
	outputs resource.Outputs
	redact  model.Redactor
	// secrets are the values to redact, those of sensitive resources included.
	secrets []model.Secret
	summary model.Run
	stopped string // why the rest does not run
	told    int    // how many resources were told of
	cursor  int    // all before it had their turns
	// halted says of what includes a manifest why that has ended, children what came of its resources.
	halted   map[model.Ref]string
	children map[model.Ref]model.Counts
	// announced are those that include a manifest which has begun.
	announced map[model.Ref]bool
	// health is what came of health checks that were made ahead of the turns.
	health map[model.Ref][]model.HealthResult
}

// result is what came of a node, as far as others need to know.
type result struct {
	begun   bool
	done    bool
	changed bool // really, not in noop
	touched bool // changed, or failed and is not known to be as it was
	would   bool // in noop
	failed  bool
	unmet   bool
	// brokenOff says that its health checks were broken off.
	brokenOff bool
	// unknown says that in noop it is not known whether it would change.
	unknown bool
	// until is, in noop, the resource itself if it would change, or what must be
	// applied before that is known.
	until *node
	// provided is, in noop, what must be applied before the resource's guards can
	// be believed; nil when there is nothing of the kind.
	provided *node
	// pending is, in noop, the last of what would change among the resource and all
	// that it comes after. What noop holds back even in a real run is not among it.
	pending *node
	// untold is the transaction of a resource that ended before one ahead of it did.
	untold *model.Transaction
}

// Run reconciles the resources of a graph. When ctx ends, the change in hand is
// broken off; when opts.Stop is closed, it is finished first, and only a look, a
// guard or a health check is broken off. What went wrong stands in the summary and
// the transactions.
func Run(ctx context.Context, g *Graph, opts Options) *model.Run {
	r := newRun(g, opts)
	r.do(ctx)

	return &r.summary
}

func newRun(g *Graph, opts Options) *run {
	if opts.RunID == "" {
		opts.RunID = ksuid.New().String()
	}
	opts.Env.RunID = opts.RunID
	opts.Env.RunEnv = []string{EnvRun + "=" + strings.Join(append(slices.Clone(opts.Parents), opts.RunID), ","), EnvState + "=" + opts.Env.Host.StateDir()}
	r := &run{
		graph: g, opts: opts, looks: make([]look, len(g.nodes)), results: make([]result, len(g.nodes)),
		owed: map[model.Ref]bool{}, outputs: resource.Outputs{}, halted: map[model.Ref]string{}, children: map[model.Ref]model.Counts{}, announced: map[model.Ref]bool{},
	}
	r.summary = model.Run{
		Protocol: model.ProtocolRun, RunID: opts.RunID, Node: opts.Node, Manifest: opts.Manifest,
		Revision: opts.Revision, Digest: opts.Digest, Cause: opts.Cause, Started: now(),
		Noop: opts.Env.Scope.Noop, Version: opts.Version, CorrelationID: opts.CorrelationID,
	}
	r.learnSecrets()

	return r
}

func (r *run) do(ctx context.Context) {
	if err := r.enter(ctx); err != nil {
		r.stopped = "the run could not begin: " + err.Error()
		r.summary.Errors = append(r.summary.Errors, r.stopped)
	}
	r.recallDebts(ctx)
	looking, cancel := r.untilStopped(ctx)
	defer cancel(nil)
	if r.stopped == "" {
		r.lookAll(looking, r.graph.nodes)
		r.checkAhead(looking)
	}
	for n := r.next(); n != nil; n = r.next() {
		r.turn(ctx, looking, n)
	}
	r.forgetDebts(ctx)
	r.leave()
	r.finish()
}

// enter begins the host's run. One that changes nothing writes nothing, not even
// that it ran.
func (r *run) enter(ctx context.Context) error {
	h := r.opts.Env.Host
	switch {
	case h == nil:
		return nil
	case r.opts.Env.Scope.Unchanging():
		h.ForgetAccounts()
		return nil
	}

	return h.BeginRun(ctx, files.RunOptions{ReadAll: r.opts.ReadAll, Joined: len(r.opts.Parents) > 0})
}

func (r *run) leave() {
	h := r.opts.Env.Host
	if h == nil || r.opts.Env.Scope.Unchanging() {
		return
	}
	if err := h.EndRun(); err != nil {
		r.summary.Errors = append(r.summary.Errors, err.Error())
	}
}

// finish completes the summary.
func (r *run) finish() {
	r.summary.Counts.Unique = len(r.graph.nodes)
	r.summary.Duration = time.Since(r.summary.Started)
	if r.summary.Drift.Repaired > 0 && !r.opts.Woken.IsZero() {
		r.summary.Drift.Latency = time.Since(r.opts.Woken)
	}
}

// noteDrift counts a difference that nobody asked for, and its repair. What
// includes a manifest differs by what that has, which is counted already.
func (r *run) noteDrift(n *node, repaired bool) {
	if !r.unasked() || n.res.Type.Include != nil {
		return
	}
	r.summary.Drift.Detected++
	if repaired {
		r.summary.Drift.Repaired++
	}
}

// unasked says that the run was not started because somebody wanted a change.
func (r *run) unasked() bool {
	return r.opts.Cause == model.CauseDrift || r.opts.Cause == model.CauseSchedule || r.opts.Cause == model.CauseHealth
}

// ignoresDrift says that the resource is not even looked at in this run.
func (r *run) ignoresDrift(n *node) bool {
	return r.unasked() && n.res.Meta().Drift == model.DriftIgnore && !r.scope(n).HealthCheckOnly
}

// isNoop says that a resource is not to be changed in this run.
func (r *run) isNoop(n *node) bool { return r.opts.Env.Scope.Noop || r.onlyReports(n) }

// onlyReports says that no run of this cause changes a resource, noop or not.
func (r *run) onlyReports(n *node) bool {
	meta := n.res.Meta()

	return n.res.Scope.Noop || meta.Noop || (r.unasked() && meta.Drift == model.DriftReport && !r.scope(n).HealthCheckOnly)
}
