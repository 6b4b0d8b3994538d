package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
)

// begin returns the summary of a run that begins.
func (n *Node) begin(key string, revision uint64, digest string, cause model.Cause) *model.Run {
	return &model.Run{
		Protocol: model.ProtocolRun, RunID: ksuid.New().String(), Node: n.Node, Manifest: key, Revision: revision, Digest: digest,
		Cause: cause, Started: n.now(), Version: n.Version,
	}
}

// transaction returns that of a resource in a run, which found it in its state.
func (n *Node) transaction(run *model.Run, r *Resource) *model.Transaction {
	return &model.Transaction{
		Protocol: model.ProtocolTransaction, EventID: ksuid.New().String(), Timestamp: n.now(), Type: r.Ref.Type, Name: r.Ref.Name,
		Provider: r.Provider, Alias: r.Alias, RequestedEnsure: r.Ensure, FinalEnsure: r.Ensure, Source: r.Source, Properties: r.Properties,
		RunID: run.RunID, Node: n.Node, Manifest: run.Manifest, Revision: run.Revision, Digest: run.Digest, Cause: run.Cause, Noop: run.Noop,
		CorrelationID: run.CorrelationID,
	}
}

// took waits as long as a run takes, and reports whether ctx goes on. Requests are executed
// meanwhile, as an agent does.
func (n *Node) took(ctx context.Context) bool {
	over := time.After(n.between(n.RunTime/2, n.RunTime))
	for {
		select {
		case <-over:
			return true
		case <-n.asked:
			n.answer(ctx)
		case <-ctx.Done():
			return false
		}
	}
}

// runWhole runs the assignment of a key, which takes a while.
func (n *Node) runWhole(ctx context.Context, key string, cause model.Cause) {
	if n.took(ctx) {
		n.runNow(ctx, key, cause)
	}
}

// runNow runs the assignment of a key, and reports that.
func (n *Node) runNow(ctx context.Context, key string, cause model.Cause) {
	n.runFor(ctx, key, cause, &request{})
}

// runFor is runNow for a request, and returns the run; nil where there is none.
func (n *Node) runFor(ctx context.Context, key string, cause model.Cause, asked *request) *model.Run {
	a := n.active[key]
	if ctx.Err() != nil || a == nil {
		return nil
	}
	run := n.begin(key, a.Revision, a.manifest.Digest, cause)
	run.Noop, run.CorrelationID = a.manifest.Noop || asked.Noop, asked.ID
	failing := -1
	if !run.Noop {
		failing = n.failing(a.manifest)
	}
	for i := range a.manifest.Resources {
		t := n.transaction(run, &a.manifest.Resources[i])
		t.Duration = time.Duration(n.random.IntN(3_000_000))
		switch {
		case i == failing:
			t.Failed, t.Errors = true, []string{n.Error}
		case a.pending != nil && a.pending[i] != nil:
			t.Changed, t.Changes = true, a.changes(i, run.Noop)
		}
		run.Counts.Add(t)
		for _, text := range t.Errors {
			run.Errors = append(run.Errors, t.Label()+": "+text)
		}
		run.Duration += t.Duration
		n.report.Transaction(t)
	}
	if !asked.Noop {
		a.ran = true
	}
	if !run.Noop {
		a.pending = nil
	}
	run.Counts.Unique = len(a.manifest.Resources)
	n.report.Run(run)
	if !asked.Noop {
		n.status.SetRun(key, run)
	}
	n.report.End(run.RunID)

	return run
}

// changes returns what a run changes of a resource, or would change.
func (a *assignment) changes(i int, noop bool) []model.Change {
	if noop {
		return a.pending[i]
	}
	out := slices.Clone(a.pending[i])
	for j := range out {
		out[j] = out[j].Done()
	}

	return out
}

// failing returns the place of the resource that fails on the node, -1 for none.
func (n *Node) failing(m *Manifest) int {
	if n.Error == "" || len(m.Resources) == 0 {
		return -1
	}

	return int(n.seed[1] % uint64(len(m.Resources)))
}

// flapsAfter is after how many repairs the resource of a flapping node flaps.
const flapsAfter = 6

// repair reports drift of a resource that was repaired; an empty key has none.
func (n *Node) repair(key string) {
	a := n.active[key]
	if a == nil || a.manifest.Noop || len(a.manifest.Resources) == 0 {
		return
	}
	i, by := n.random.IntN(len(a.manifest.Resources)), "tampered"
	if n.Kind == KindFlapping {
		i = 0
	}
	if n.Kind == KindHostile {
		by = hostileLine(20 << 10)
	}
	r := &a.manifest.Resources[i]
	run := n.begin(key, a.Revision, a.manifest.Digest, model.CauseDrift)
	latency := n.between(500*time.Microsecond, 5*time.Millisecond)
	t := n.transaction(run, r)
	t.Duration, t.Changed, t.Changes = latency, true, []model.Change{r.drifted(by).Done()}
	t.Drift = &model.Repair{From: t.Changes[0].Property, SeenAt: t.Timestamp, RepairedAt: t.Timestamp.Add(latency), Latency: latency}
	run.Counts.Add(t)
	run.Counts.Unique, run.Duration = 1, latency
	run.Drift = model.Drifted{Detected: 1, Repaired: 1, Latency: latency}
	n.report.Transaction(t)
	n.report.Run(run)
	n.status.SetPart(key, run)
	n.report.End(run.RunID)
	if n.repairs++; n.Kind == KindFlapping && n.repairs >= flapsAfter && !n.flaps {
		n.flaps = true
		n.flap(key, r.Ref)
	}
}

// flap reports that a resource flaps.
func (n *Node) flap(key string, ref model.Ref) {
	state := model.FlappingState{Manifest: key, Resource: ref, Since: n.now(), Writer: "sed (pid 4711, uid 0)"}
	n.status.SetFlapping([]model.FlappingState{state})
	n.report.Node(key, model.NodeFlapping, fmt.Sprintf("%s of %s is changed again and again, probably by %s; its repairs are held back more and more until that ends", ref, key, state.Writer))
}

// check reports a health check with another status than before; an empty key has none.
func (n *Node) check(key string) {
	a := n.active[key]
	if a == nil || len(a.manifest.Resources) == 0 {
		return
	}
	was, result := model.HealthOK, model.HealthResult{Name: "check_http", Status: model.HealthCritical, Tries: 1, Output: "CRITICAL: connection refused on port 8080", Duration: 12 * time.Millisecond, Format: model.HealthNagios}
	if n.critical = !n.critical; !n.critical {
		was, result.Status, result.Output = model.HealthCritical, model.HealthOK, "OK: 200 in 12 ms"
	}
	if n.Kind == KindHostile {
		result.Output = hostileText
	}
	run := n.begin(key, a.Revision, a.manifest.Digest, model.CauseHealth)
	n.report.Health(n.transaction(run, &a.manifest.Resources[0]), was, result)
	var counts model.HealthCounts
	counts.Add(result.Status)
	n.status.SetHealth(key, counts)
}
