package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// Identity is common to all transactions of a run.
type Identity struct {
	// RunID is a KSUID.
	RunID string
	// Manifest is the name of the manifest. Revision and Digest identify its version.
	Manifest      string
	Revision      uint64
	Digest        string
	Node          string
	Version       string
	Cause         model.Cause
	CorrelationID string
}

// runReport builds the summary and the transactions of a run.
type runReport struct {
	Identity
	summary model.Run
	// counts are the counts of included resources, by the resource that includes them.
	counts map[model.Ref]model.Counts
	// full gives stable transactions an id.
	full bool
	// onTransaction receives each transaction in the order of the graph. It may be nil.
	onTransaction func(*plan.Node, *model.Transaction)

	graph *plan.Graph
	// ended are the transactions by the position of their node. Those before next were emitted.
	ended []reportEntry
	next  int
	// notRun is the number of nodes that did not run.
	notRun int
}

type reportEntry struct {
	t    *model.Transaction
	done bool
}

func newReport(id Identity, g *plan.Graph, noop bool) *runReport {
	return &runReport{
		Identity: id, graph: g, ended: make([]reportEntry, g.Len()), counts: map[model.Ref]model.Counts{},
		summary: model.Run{
			Protocol: model.ProtocolRun, RunID: id.RunID, Node: id.Node, Manifest: id.Manifest, Revision: id.Revision, Digest: id.Digest,
			Cause: id.Cause, Started: now(), Noop: noop, Version: id.Version, CorrelationID: id.CorrelationID,
		},
	}
}

func (r *runReport) begin(n *plan.Node, noop, healthCheckOnly bool) *model.Transaction {
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

// complete completes a transaction. A stable transaction has no id, because making 5,000 ids takes
// a tenth of a stable run.
func (r *runReport) complete(n *plan.Node, t *model.Transaction) {
	t.Duration = now().Sub(t.Timestamp)
	if r.full || t.Refreshed || t.Outcome() != model.OutcomeStable {
		t.EventID = ksuid.New().String()
	}
	for _, p := range n.Parents {
		counts := r.counts[p.Ref]
		counts.Unique++
		counts.Add(t)
		r.counts[p.Ref] = counts
	}
}

// emit emits the transaction of a node after all transactions before it. Nil emits nothing for the
// node.
func (r *runReport) emit(n *plan.Node, t *model.Transaction) {
	r.ended[n.At] = reportEntry{t, true}
	for ; r.next < len(r.ended) && r.ended[r.next].done; r.next++ {
		if t := r.ended[r.next].t; t != nil {
			r.ended[r.next].t = nil
			r.count(r.graph.Nodes()[r.next], t)
		}
	}
}

func (r *runReport) count(n *plan.Node, t *model.Transaction) {
	r.summary.Counts.Add(t)
	if at := t.RetryAt; !at.IsZero() && (r.summary.RetryAt.IsZero() || at.Before(r.summary.RetryAt)) {
		r.summary.RetryAt = at
	}
	for _, err := range t.Errors {
		r.addError(t.Label() + ": " + err)
	}
	if r.onTransaction != nil {
		r.onTransaction(n, t)
	}
}

func (r *runReport) addError(text string) { r.summary.Errors = append(r.summary.Errors, text) }

// finish completes the summary. woken is the time of the event that caused the run, or zero.
func (r *runReport) finish(woken time.Time) {
	r.summary.Counts.Unique = r.graph.Len() - r.notRun
	r.summary.Duration = time.Since(r.summary.Started)
	if r.summary.Drift.Repaired > 0 && !woken.IsZero() {
		r.summary.Drift.Latency = time.Since(woken)
	}
}

// differed lists the properties that changes are about.
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

// noteDrift counts drift and its repair. It ignores resources that include a manifest, because
// their children are counted.
func (r *runReport) noteDrift(n *plan.Node, p resource.Plan, repaired bool) {
	if !r.Cause.IsUnasked() || p.Always || n.Resource.Type.Include != nil {
		return
	}
	r.summary.Drift.Detected++
	if repaired {
		r.summary.Drift.Repaired++
	}
}

func encodeJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		// Specs and states are plain structs. If one cannot be encoded, its type has a bug, and the
		// report must show it.
		b, _ = json.Marshal(map[string]string{"error": err.Error()})
	}

	return b
}

func now() time.Time { return time.Now().UTC() }

// LogTransaction writes one log line for a resource (spec/formats.md, "Command line"): INFO if
// stable, WARN if changed, ERROR if failed.
func LogTransaction(ctx context.Context, log *slog.Logger, t *model.Transaction) {
	level, word := lineOf(t)
	if c := t.HealthCheck; slices.ContainsFunc(c, func(h model.HealthResult) bool { return h.Status != model.HealthOK }) {
		level = max(level, slog.LevelWarn)
	}
	if !log.Enabled(ctx, level) {
		return
	}
	var attrs []slog.Attr
	if !isUnseen(t) {
		attrs = append(attrs, slog.String("ensure", t.RequestedEnsure))
	}
	attrs = append(attrs, slog.Duration("runtime", t.Duration.Round(time.Millisecond)))
	if t.Within != (model.Ref{}) {
		attrs = append(attrs, slog.String("manifest", t.Within.Name))
	}
	if t.Repaired() {
		attrs = append(attrs, slog.String("cause", string(t.Cause)), slog.String("latency", model.ShortDuration(t.Drift.Latency)))
	}
	if t.Provider != "" {
		attrs = append(attrs, slog.String("provider", t.Provider))
	}
	if t.NoopMessage != "" {
		attrs = append(attrs, slog.String("noop", t.NoopMessage))
	}
	if t.SkipReason != "" && t.SkipReason != t.NoopMessage {
		attrs = append(attrs, slog.String("reason", t.SkipReason))
	}
	if len(t.UnmetRequirements) > 0 {
		refs := make([]string, len(t.UnmetRequirements))
		for i, ref := range t.UnmetRequirements {
			refs[i] = ref.String()
		}
		attrs = append(attrs, slog.String("unmet", strings.Join(refs, ",")))
	}
	attrs = append(attrs, healthOf(t)...)
	if len(t.Errors) > 0 {
		if t.Source.Line > 0 {
			attrs = append(attrs, slog.String("at", t.Source.String()))
		}
		attrs = append(attrs, slog.String("error", strings.Join(t.Errors, "; ")))
	}
	log.LogAttrs(model.WithRef(ctx, t.Ref()), level, t.Ref().String()+" "+word, attrs...)
}

func isUnseen(t *model.Transaction) bool { return t.HealthCheckOnly && t.FinalEnsure == "" }

// healthOf returns the names of the checks that are not ok, and the output of those that are not
// critical, because the errors contain the output of critical checks. It returns "ok" if all checks
// are ok.
func healthOf(t *model.Transaction) []slog.Attr {
	var words, outputs []string
	for _, h := range t.HealthCheck {
		if h.Status == model.HealthOK {
			continue
		}
		words = append(words, h.Name+":"+string(h.Status))
		if line, _, _ := strings.Cut(h.Output, "\n"); line != "" && h.Status != model.HealthCritical {
			outputs = append(outputs, h.Name+": "+line)
		}
	}
	if len(words) == 0 && len(t.HealthCheck) > 0 {
		words = []string{string(model.HealthOK)}
	}
	var out []slog.Attr
	if len(words) > 0 {
		out = append(out, slog.String("health", strings.Join(words, ",")))
	}
	if len(outputs) > 0 {
		out = append(out, slog.String("output", strings.Join(outputs, "; ")))
	}

	return out
}

func lineOf(t *model.Transaction) (slog.Level, string) {
	switch t.Outcome() {
	case model.OutcomeFailed:
		return slog.LevelError, "failed"
	case model.OutcomeUnmet:
		return slog.LevelError, "skipped"
	case model.OutcomeNotRun:
		return slog.LevelWarn, "not run"
	case model.OutcomeNoop:
		return slog.LevelWarn, "would change"
	case model.OutcomeRefreshed:
		return slog.LevelWarn, "refreshed"
	case model.OutcomeChanged:
		return slog.LevelWarn, "changed"
	case model.OutcomeSkipped:
		return slog.LevelInfo, "skipped"
	default:
		return slog.LevelInfo, steady(t)
	}
}

// steady returns the word for a resource without an event. A resource that was not observed is not
// called stable.
func steady(t *model.Transaction) string {
	switch {
	case !isUnseen(t):
		return "stable"
	case len(t.HealthCheck) > 0:
		return "checked"
	default:
		return "not checked"
	}
}
