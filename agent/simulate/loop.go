package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// loop makes the runs, one after the other.
func (n *Node) loop(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-n.changed:
			n.sync(ctx)
		case <-n.controlChanged:
			n.notePause(ctx)
			if !n.known {
				n.sync(ctx)
			}
		case <-n.requests.asked:
			n.requests.answer(ctx)
		case <-n.due:
			n.act(ctx)
		case <-time.After(time.Until(n.timers.next())):
			n.tick(ctx)
		}
		if n.known && n.machine.Kind == KindSilent {
			n.fallSilent(ctx)
			return
		}
	}
}

// sync reads the assignments and runs new ones. It does nothing until the control documents are
// known, because a paused node starts no run.
func (n *Node) sync(ctx context.Context) {
	if !n.control.IsSettled() {
		return
	}
	complete := n.assigned.sync(ctx)
	if complete && !n.known {
		n.known = true
		n.joining.note()
	}
	for _, key := range n.assigned.keys() {
		if !n.assigned.active[key].ran {
			n.runWhole(ctx, key)
		}
	}
}

// fallSilent waits until the node has joined and has published its reports.
func (n *Node) fallSilent(ctx context.Context) {
	select {
	case <-n.joining.done:
	case <-ctx.Done():
	}
	for n.outbox.Len() > 0 && ctx.Err() == nil {
		tasks.Pause(ctx, 10*time.Millisecond, nil)
	}
}

// notePause runs all assignments after a pause, because runs during the pause repaired no drift.
func (n *Node) notePause(ctx context.Context) {
	before := n.paused
	if n.paused = n.runs.observes(); before && !n.paused {
		n.runAll(ctx)
	}
}

func (n *Node) runAll(ctx context.Context) {
	for _, key := range n.assigned.keys() {
		n.runWhole(ctx, key)
	}
}

// runWhole runs the assignment of a key, and takes as long as the script says.
func (n *Node) runWhole(ctx context.Context, key string) {
	cause, observes := n.runs.cause(key), n.runs.observes()
	if n.runs.mayRun(key, observes) && n.took(ctx) {
		n.runs.run(ctx, key, cause, observes)
	}
}

// took waits for the duration of a run, and executes requests during it as an agent does. It reports
// false when ctx ended.
func (n *Node) took(ctx context.Context) bool {
	over := time.After(n.timers.between(n.machine.RunTime/2, n.machine.RunTime))
	for {
		select {
		case <-over:
			return true
		case <-n.requests.asked:
			n.requests.answer(ctx)
		case <-ctx.Done():
			return false
		}
	}
}

func (n *Node) tick(ctx context.Context) {
	if isDue(&n.timers.drift) {
		n.incidents.drift(n.runs.key())
	}
	if isDue(&n.timers.health) {
		n.incidents.check(n.runs.key())
	}
	if isDue(&n.timers.run) {
		n.runAll(ctx)
	}
}

// act makes one report for the rate of the fleet, in most cases of a stable run.
func (n *Node) act(ctx context.Context) {
	switch choice := n.timers.IntN(20); {
	case n.outbox.Len() > maxWaiting:
	case choice == 0:
		n.incidents.drift(n.runs.key())
	case choice == 1:
		n.incidents.check(n.runs.key())
	default:
		n.runs.run(ctx, n.runs.key(), model.CauseSchedule, n.runs.observes())
	}
}

// maxWaiting is the number of waiting reports above which act adds none.
const maxWaiting = 100

// chance makes the random choices of a node. The goroutine of the runs owns it.
type chance struct{ *rand.Rand }

func (c chance) between(least, most time.Duration) time.Duration {
	return least + time.Duration(c.Int64N(int64(most-least)+1))
}

// agentInterval is the interval of runs of agents and simulated nodes.
const agentInterval = 5 * time.Minute

// timers are the times of the next spontaneous events of a node.
type timers struct {
	chance
	kind               Kind
	run, drift, health time.Time
}

func (t *timers) next() time.Time {
	if t.run.IsZero() {
		t.run = time.Now().Add(t.between(agentInterval/2, agentInterval))
	}
	switch {
	case t.drift.IsZero() && t.kind == KindDrifting:
		t.drift = time.Now().Add(t.between(15*time.Second, time.Minute))
	case t.drift.IsZero() && t.kind == KindFlapping:
		t.drift = time.Now().Add(t.between(3*time.Second, 6*time.Second))
	case t.health.IsZero() && t.kind == KindUnhealthy:
		t.health = time.Now().Add(t.between(20*time.Second, time.Minute))
	}

	return model.EarlierNonZero(model.EarlierNonZero(t.run, t.drift), t.health)
}

func isDue(at *time.Time) bool {
	due := !at.IsZero() && !time.Now().Before(*at)
	if due {
		*at = time.Time{}
	}

	return due
}

// runs makes the runs of a node and reports them.
type runs struct {
	chance
	machine  *machine
	assigned *assigned
	control  *desired.Control
	status   *status.Node
	report   *reporting.Reporter
}

// observes reports whether the node is paused, so that runs only observe.
func (r *runs) observes() bool { return r.control.Paused() != nil }

// mayRun reports whether the assignment of a key may run on schedule. A new assignment waits for the
// end of a pause.
func (r *runs) mayRun(key string, observes bool) bool {
	a := r.assigned.active[key]

	return a != nil && (a.ran || !observes)
}

// run runs the assignment of a key and reports it. A run that observes changes nothing.
func (r *runs) run(ctx context.Context, key string, cause model.Cause, observes bool) {
	if r.mayRun(key, observes) {
		r.perform(ctx, key, cause, &request{}, observes)
	}
}

// perform runs the assignment of a key for a request, which may be empty. It returns nil if there is no such
// assignment.
func (r *runs) perform(ctx context.Context, key string, cause model.Cause, asked *request, observes bool) *model.Run {
	a := r.assigned.active[key]
	if ctx.Err() != nil || a == nil {
		return nil
	}
	run := r.machine.begin(key, a.Revision, a.manifest.Digest, cause)
	run.Noop, run.CorrelationID = a.manifest.Noop || asked.Noop || observes, asked.ID
	record := r.status.Record(key, !asked.Noop)
	for i := range a.manifest.Resources {
		t := r.result(run, a, i, observes)
		run.Counts.Add(t)
		for _, text := range t.Errors {
			run.Errors = append(run.Errors, t.Label()+": "+text)
		}
		run.Duration += t.Duration
		r.report.Transaction(t)
		if !asked.Noop {
			record.Note(t, true)
		}
	}
	if !asked.Noop {
		a.ran = true
	}
	if !run.Noop {
		a.pending, a.drifted = nil, false
	}
	run.Counts.Unique = len(a.manifest.Resources)
	r.report.Run(run)
	if !asked.Noop {
		record.Conclude(run, true)
	}
	r.report.End(run.RunID)

	return run
}

func (r *runs) result(run *model.Run, a *assignment, i int, observes bool) *model.Transaction {
	resource := &a.manifest.Resources[i]
	t := r.machine.transaction(run, resource)
	t.Duration = time.Duration(r.IntN(3_000_000))
	fails := i == r.machine.failing(a.manifest)
	switch {
	case fails && !run.Noop:
		t.Failed, t.Errors = true, []string{r.machine.errorOf(resource.Ref.Type)}
	case a.pending != nil && a.pending[i] != nil:
		t.Changed, t.Changes = true, a.changes(i, run.Noop)
	case fails && observes:
		t.Changed, t.Changes = true, []model.Change{resource.change(nil)}
	}
	if t.Changed && (a.drifted || observes) && run.Cause.IsUnasked() {
		noteDrift(run, t)
	}

	return t
}

func noteDrift(run *model.Run, t *model.Transaction) {
	run.Drift.Detected++
	if t.Noop {
		return
	}
	run.Drift.Repaired++
	run.Drift.Latency = t.Duration
	t.Drift = &model.Repair{From: t.Changes[0].Property, SeenAt: t.Timestamp, RepairedAt: t.Timestamp.Add(t.Duration), Latency: t.Duration}
}

// key returns the key of a random active assignment, or an empty text.
func (r *runs) key() string {
	if len(r.assigned.active) == 0 {
		return ""
	}

	return place(r.assigned.keys(), r.IntN(len(r.assigned.active)))
}

func (r *runs) cause(key string) model.Cause {
	if a := r.assigned.active[key]; a != nil && !a.ran {
		return model.CauseManifest
	}

	return model.CauseSchedule
}

// incidents are the spontaneous events of a node: drift and health checks.
type incidents struct {
	*runs
	// repairs counts the repairs of drift. flaps means that flapping was reported, critical that a health
	// check is critical.
	repairs         int
	flaps, critical bool
}

// flapsAfter is the number of repairs after which the resource of a flapping node flaps.
const flapsAfter = 6

// drift reports drift of a resource, which is repaired unless the node is paused. It does nothing for an
// empty key.
func (d *incidents) drift(key string) {
	a := d.assigned.active[key]
	if a == nil || a.manifest.Noop || len(a.manifest.Resources) == 0 {
		return
	}
	i, by := d.IntN(len(a.manifest.Resources)), "tampered"
	if d.machine.Kind == KindFlapping {
		i = 0
	}
	if d.machine.Kind == KindHostile {
		by = hostileLine(20 << 10)
	}
	r, latency := &a.manifest.Resources[i], d.between(500*time.Microsecond, 5*time.Millisecond)
	change, observes := r.drifted(by), d.observes()
	if observes && !a.drift(i, change) {
		return // it is known
	}
	if !observes {
		change = change.Done()
	}
	run := d.machine.begin(key, a.Revision, a.manifest.Digest, model.CauseDrift)
	run.Noop = observes
	t := d.machine.transaction(run, r)
	t.Duration, t.Changed, t.Changes = latency, true, []model.Change{change}
	noteDrift(run, t)
	run.Counts.Add(t)
	run.Counts.Unique, run.Duration = 1, latency
	d.report.Transaction(t)
	d.report.Run(run)
	record := d.status.Record(key, false)
	record.Note(t, false)
	record.ConcludePart(run)
	d.report.End(run.RunID)
	if observes {
		return
	}
	if d.repairs++; d.machine.Kind == KindFlapping && d.repairs >= flapsAfter && !d.flaps {
		d.flaps = true
		d.flap(key, r.Ref)
	}
}

func (d *incidents) flap(key string, ref model.Ref) {
	state := model.FlappingState{Manifest: key, Resource: ref, Since: d.machine.now(), Writer: "sed (pid 4711, uid 0)"}
	d.status.SetFlapping([]model.FlappingState{state})
	d.report.Node(key, model.NodeFlapping, fmt.Sprintf("%s of %s keeps being changed, probably by %s; the agent delays its repairs more and more until this ends", ref, key, state.Writer))
}

// check reports a health check with a new status. It does nothing for an empty key.
func (d *incidents) check(key string) {
	a := d.assigned.active[key]
	if a == nil || len(a.manifest.Resources) == 0 {
		return
	}
	was, result := model.HealthOK, model.HealthResult{Name: "check_http", Status: model.HealthCritical, Tries: 1, Output: "CRITICAL: connection refused on port 8080", Duration: 12 * time.Millisecond, Format: model.HealthNagios}
	if d.critical = !d.critical; !d.critical {
		was, result.Status, result.Output = model.HealthCritical, model.HealthOK, "OK: 200 in 12 ms"
	}
	if d.machine.Kind == KindHostile {
		result.Output = hostileText
	}
	run := d.machine.begin(key, a.Revision, a.manifest.Digest, model.CauseHealth)
	d.report.Health(d.machine.transaction(run, &a.manifest.Resources[0]), was, result)
	var counts model.HealthCounts
	counts.Add(result.Status)
	d.status.SetHealth(key, counts)
}
