package simulate

import (
	"fmt"
	"time"

	"github.com/musterfleet/muster/model"
)

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

// flap reports a flapping resource.
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
