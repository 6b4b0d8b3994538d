package engine

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// Identity is what all transactions of a run have in common.
type Identity struct {
	// RunID is a KSUID.
	RunID string
	// Manifest names what runs; Revision and Digest say which version of it.
	Manifest      string
	Revision      uint64
	Digest        string
	Node          string
	Version       string
	Cause         model.Cause
	CorrelationID string
}

// Report is the report of one run.
type runReport struct {
	Identity
	Summary model.Run
	// Counts are those of the resources of included manifests, by what includes them.
	Counts map[model.Ref]model.Counts
	// Full puts properties and status into the transactions of stable resources too.
	Full bool
	// OnTransaction gets each transaction, in the order of the graph; nil is nobody.
	OnTransaction func(*graph.Node, *model.Transaction)

	graph *graph.Graph
	// ended are the transactions by the place of their node, those before next were
	// handed on.
	ended []reportEntry
	next  int
	// leftOut is how many nodes got no turn.
	leftOut int
}

type reportEntry struct {
	t    *model.Transaction
	done bool
}

// New returns the report of a run that begins now.
func newReport(id Identity, g *graph.Graph, noop bool) *runReport {
	return &runReport{
		Identity: id, graph: g, ended: make([]reportEntry, g.Len()), Counts: map[model.Ref]model.Counts{},
		Summary: model.Run{
			Protocol: model.ProtocolRun, RunID: id.RunID, Node: id.Node, Manifest: id.Manifest, Revision: id.Revision, Digest: id.Digest,
			Cause: id.Cause, Started: now(), Noop: noop, Version: id.Version, CorrelationID: id.CorrelationID,
		},
	}
}

// Move carries the report over to a graph that has more nodes.
func (r *runReport) Move(to *graph.Graph) {
	before := r.ended
	r.ended, r.next = make([]reportEntry, to.Len()), 0
	for i, n := range r.graph.Nodes() {
		r.ended[to.Node(n.Ref).At] = before[i]
	}
	r.graph = to
}

// Begin starts the transaction of a node.
func (r *runReport) Begin(n *graph.Node, noop, healthCheckOnly bool) *model.Transaction {
	meta := n.Resource.Meta()
	t := &model.Transaction{
		Protocol: model.ProtocolTransaction, Timestamp: now(),
		Type: n.Ref.Type, Name: n.Ref.Name, Alias: meta.Alias, RequestedEnsure: meta.Ensure, Source: n.Resource.Pos,
		RunID: r.RunID, Node: r.Node, Manifest: r.Manifest, Revision: r.Revision, Digest: r.Digest, Cause: r.Cause,
		CorrelationID: r.CorrelationID, Noop: noop, HealthCheckOnly: healthCheckOnly,
	}
	if n.Owner != nil {
		t.Within = n.Owner.Ref
	}

	return t
}

// End completes a transaction, and hands it on once all before it were.
func (r *runReport) End(n *graph.Node, t *model.Transaction) {
	r.complete(n, t)
	r.conclude(n, t)
}

// Hold completes the transaction of a change that is made at the end of the run, for Release.
// Those after it are handed on without it.
func (r *runReport) Hold(n *graph.Node, t *model.Transaction) {
	r.complete(n, t)
	r.conclude(n, nil)
}

// Release hands on a transaction that was held, after all others.
func (r *runReport) Release(n *graph.Node, t *model.Transaction) { r.hand(n, t) }

// complete completes a transaction. One that only counts has no id: making 5,000 of them takes a
// tenth of a stable run.
func (r *runReport) complete(n *graph.Node, t *model.Transaction) {
	t.Duration = now().Sub(t.Timestamp)
	if r.Full || t.Refreshed || t.Outcome() != model.OutcomeStable {
		t.EventID = ksuid.New().String()
	}
	for _, p := range n.Parents {
		counts := r.Counts[p.Ref]
		counts.Unique++
		counts.Add(t)
		r.Counts[p.Ref] = counts
	}
}

// LeaveOut leaves a node out of the report.
func (r *runReport) LeaveOut(n *graph.Node) {
	r.leftOut++
	r.conclude(n, nil)
}

// conclude hands on what has ended, up to the first node that has not.
func (r *runReport) conclude(n *graph.Node, t *model.Transaction) {
	r.ended[n.At] = reportEntry{t, true}
	for ; r.next < len(r.ended) && r.ended[r.next].done; r.next++ {
		if t := r.ended[r.next].t; t != nil {
			r.ended[r.next].t = nil
			r.hand(r.graph.Nodes()[r.next], t)
		}
	}
}

// hand counts a transaction and hands it on.
func (r *runReport) hand(n *graph.Node, t *model.Transaction) {
	r.Summary.Counts.Add(t)
	if at := t.RetryAt; !at.IsZero() && (r.Summary.RetryAt.IsZero() || at.Before(r.Summary.RetryAt)) {
		r.Summary.RetryAt = at
	}
	for _, err := range t.Errors {
		r.AddError(t.Label() + ": " + err)
	}
	if r.OnTransaction != nil {
		r.OnTransaction(n, t)
	}
}

// AddError adds an error to the summary.
func (r *runReport) AddError(text string) { r.Summary.Errors = append(r.Summary.Errors, text) }

// Finish completes the summary. woken is when the wake-up came that led to the
// run, zero when it is not known.
func (r *runReport) Finish(woken time.Time) {
	r.Summary.Counts.Unique = r.graph.Len() - r.leftOut
	r.Summary.Duration = time.Since(r.Summary.Started)
	if r.Summary.Drift.Repaired > 0 && !woken.IsZero() {
		r.Summary.Drift.Latency = time.Since(woken)
	}
}

// Repaired describes the repair of a resource of which nobody asked for the change p;
// seen is when that was noticed, zero at the begin of the run; made when the change was made,
// zero for now.
func (r *runReport) Repaired(t *model.Transaction, p resource.Plan, seen, made time.Time) {
	if !r.Cause.IsUnasked() || p.Always {
		return
	}
	if made.IsZero() {
		made = time.Now()
	}
	if seen.IsZero() {
		seen = r.Summary.Started
	}
	made = made.UTC()
	t.Drift = &model.Repair{From: differed(t.Changes), SeenAt: seen.UTC(), RepairedAt: made, Latency: made.Sub(seen)}
}

// Unrepaired describes drift of a resource that failed, noticed at a time; zero is that nobody
// did.
func (r *runReport) Unrepaired(t *model.Transaction, seen time.Time) {
	if r.Cause.IsUnasked() && !seen.IsZero() {
		t.Drift = &model.Repair{From: differed(t.Changes), SeenAt: seen.UTC()}
	}
}

// differed returns what the changes were about.
func differed(changes []model.Change) string {
	var out []string
	for _, c := range changes {
		text := cmp.Or(c.Property, c.Action)
		if c.Property != "" && c.From != "" {
			text += ": " + c.From
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}

	return strings.Join(out, ", ")
}

// NoteDrift counts a difference that nobody asked for, and its repair. A resource
// that includes a manifest differs by what that has, which is counted already.
func (r *runReport) NoteDrift(n *graph.Node, p resource.Plan, repaired bool) {
	if !r.Cause.IsUnasked() || p.Always || n.Resource.Type.Include != nil {
		return
	}
	r.Summary.Drift.Detected++
	if repaired {
		r.Summary.Drift.Repaired++
	}
}

// Describe adds properties and status to a transaction that shows them.
func (r *runReport) Describe(t *model.Transaction, spec resource.Spec, state resource.State) {
	if !r.Full && t.Outcome() == model.OutcomeStable {
		return
	}
	t.Properties = encodeJSON(spec)
	if state != nil {
		t.Status = encodeJSON(state)
	}
}

func encodeJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		// Specs and states are plain structs; one that cannot be encoded is a
		// mistake of its type that must show, not vanish.
		b, _ = json.Marshal(map[string]string{"error": err.Error()})
	}

	return b
}

// WouldRefresh returns the subscribers that a real change would refresh.
func wouldRefresh(n *graph.Node) []model.Ref {
	var refs []model.Ref
	for _, s := range n.Subscribers {
		if s.Resource.Type.Refreshes {
			refs = append(refs, s.Ref)
		}
	}

	return refs
}

// Now is when something happened, in UTC.
func now() time.Time { return time.Now().UTC() }
