// Package reporting reports the results of a node. Reporter turns results into reports and omits
// unchanged ones. Outbox stores reports in segments on disk, up to a limit in bytes. Delivery
// publishes them, oldest first and at least once.
//
// The outbox stores summaries of stable runs in separate segments, and drops these first when it is
// full. It reports the dropped reports.
package reporting

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/model"
)

// Appender stores reports; *Outbox implements it.
type Appender interface {
	// Append stores a report and returns its seq. It returns an error if the report cannot be encoded.
	Append(r model.Report) (seq uint64, err error)
	// Sync makes all reports durable. SyncSoon does so too, and does not wait for it.
	Sync() error
	SyncSoon()
}

// Reporter puts reports into the outbox. Its methods are safe for concurrent use, but only one goroutine may
// report a run. End follows each run.
type Reporter struct {
	// Outbox stores the reports. It is set before the first report.
	Outbox Appender
	o      ReporterOptions
	// lost is set when reports were dropped. They may include reports of results.
	lost atomic.Bool

	mu sync.Mutex
	// results are not reported again.
	results results
	runs    map[string]*currentRun
}

// ReporterOptions are what a Reporter is made from.
type ReporterOptions struct {
	// State returns the state of the node, MaxDocument how long a report may be.
	State       func() model.NodeState
	MaxDocument func() int
	Log         *slog.Logger
}

// NewReporter returns a reporter that has reported nothing.
func NewReporter(o ReporterOptions) *Reporter {
	return &Reporter{o: o, results: results{}, runs: map[string]*currentRun{}}
}

type currentRun struct {
	// reported counts the transactions that were reported, unchanged the others by the run
	// that reported the same.
	reported  int
	unchanged map[string]int
}

// singles is how many transactions of a run travel alone: with outcomes in their
// subjects, and at once. The others of a large run travel in batches.
const singles = 50

// add puts a report into the outbox, and reports whether it could be encoded. One
// that cannot is logged.
func (p *Reporter) add(r model.Report, document any) bool {
	data, err := json.Marshal(document)
	if err == nil {
		r.ID, r.Time, r.Data = ksuid.New().String(), time.Now().UTC(), data
		_, err = p.Outbox.Append(r)
	}
	if err != nil {
		p.o.Log.Error("report lost", "kind", r.Kind, "outcome", r.Outcome, "run_id", r.RunID, "error", err)
	}

	return err == nil
}

// sync makes reports durable. A disk that takes none is logged by the outbox, once.
func (p *Reporter) sync() {
	_ = p.Outbox.Sync()
}

// Transaction reports the result of one resource. A result that an earlier run reported is only
// counted in the summary.
func (p *Reporter) Transaction(t *model.Transaction) {
	now := time.Now()
	run, isNews := p.begin(t, now)
	if !isNews {
		return
	}
	if p.add(model.Report{
		Kind: model.KindTransaction, Outcome: t.Outcome(), Type: t.Protocol, RunID: t.RunID, Manifest: t.Manifest,
		Revision: t.Revision, Digest: t.Digest, Cause: t.Cause, CorrelationID: t.CorrelationID, Batch: run.reported > singles,
	}, bounds.Transaction(t, p.o.MaxDocument())) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.results.note(t, now)
	}
}

// begin counts a transaction in its run. It reports whether the transaction gets a report.
func (p *Reporter) begin(t *model.Transaction, now time.Time) (run *currentRun, isNews bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if run = p.runs[t.RunID]; run == nil {
		run = &currentRun{unchanged: map[string]int{}}
		p.runs[t.RunID] = run
		if p.lost.Swap(false) {
			clear(p.results)
		}
		p.results.limit(t.Manifest)
	}
	if !isReported(t) {
		p.results.forget(t)
		return run, false
	}
	if runID, ok := p.results.repeated(t, now); ok {
		run.unchanged[runID]++
		return run, false
	}
	run.reported++

	return run, true
}

func (p *Reporter) run(runID string) *currentRun {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.runs[runID]
}

// End forgets a run that ended.
func (p *Reporter) End(runID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.runs, runID)
}

// isReported reports whether a transaction gets a separate report. Stable resources do not. Resources
// that this node does not manage get one only in requested runs.
func isReported(t *model.Transaction) bool {
	switch t.Outcome() {
	case model.OutcomeStable:
		return t.Refreshed
	case model.OutcomeSkipped:
		return !t.Cause.IsUnasked()
	default:
		return true
	}
}

// News reports whether anything of a run was reported that was not known.
func (p *Reporter) News(runID string) bool {
	run := p.run(runID)

	return run != nil && run.reported > 0
}

// Run reports a summary and makes all reports so far durable: after a repair asynchronously, otherwise
// before it returns.
func (p *Reporter) Run(r *model.Run) {
	if run := p.run(r.RunID); run != nil {
		for _, id := range slices.Sorted(maps.Keys(run.unchanged)) {
			r.Unchanged = append(r.Unchanged, model.Unchanged{RunID: id, Transactions: run.unchanged[id]})
		}
	}
	r.Errors = bounds.Errors(r.Errors, p.o.MaxDocument())
	p.add(model.Report{
		Kind: model.KindRun, Outcome: r.Outcome(), Type: r.Protocol, RunID: r.RunID, Manifest: r.Manifest,
		Revision: r.Revision, Digest: r.Digest, Cause: r.Cause, CorrelationID: r.CorrelationID,
	}, r)
	if r.Cause == model.CauseDrift {
		p.Outbox.SyncSoon()
		return
	}
	p.sync()
}

// Node reports an event of the node, which may be about the manifest of a key, and
// makes it and all before it durable.
func (p *Reporter) Node(key string, event model.NodeEvent, message string) {
	s := p.o.State()
	s.Event, s.Message = event, message
	p.add(model.Report{Kind: model.KindNode, Outcome: model.Outcome(event), Type: model.ProtocolNode, Manifest: key}, bounds.Event(s, p.o.MaxDocument()))
	p.sync()
}

// Ensure reports the final response to a request.
func (p *Reporter) Ensure(response model.EnsureResponse) {
	response.Error = bounds.TextTo(response.Error, bounds.MaxError)
	out := model.Report{Kind: model.KindEnsure, Type: response.Protocol, Cause: model.CauseEnsure, CorrelationID: response.ID}
	if response.Protocol == model.ProtocolRunResponse {
		out.Cause = model.CauseRequest
	}
	switch {
	case response.Phase == model.EnsureDone && response.State == nil:
		out.Outcome = model.OutcomeOf(response.Runs)
	case response.State != nil:
		response.State = bounds.Transaction(response.State, p.o.MaxDocument()-2*bounds.MaxError)
		out.Outcome, out.RunID = response.State.Outcome(), response.State.RunID
	case response.Phase == model.EnsureExpired, response.Phase == model.EnsureCancelled:
		out.Outcome = model.OutcomeNotRun
	default:
		out.Outcome = model.OutcomeFailed
	}
	p.add(out, response)
	p.sync()
}

// Health reports a changed status of a health check and requests a sync; was is the previous status.
// The run may report nothing else.
func (p *Reporter) Health(t *model.Transaction, was model.HealthStatus, now model.HealthResult) {
	p.add(model.Report{
		Kind: model.KindHealth, Outcome: model.Outcome(now.Status), Type: model.ProtocolHealth, RunID: t.RunID, Manifest: t.Manifest,
		Revision: t.Revision, Digest: t.Digest, Cause: t.Cause,
	}, model.HealthReport{
		Protocol: model.ProtocolHealth, Node: t.Node, Manifest: t.Manifest, Resource: t.Ref(), Check: now.Name,
		Status: now.Status, Was: was, Output: now.Output, At: time.Now().UTC(), RunID: t.RunID,
	})
	p.Outbox.SyncSoon()
}

// Forget has all results of a manifest reported again.
func (p *Reporter) Forget(manifest string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.results, manifest)
}

// Dropped returns the report about dropped ones, from the identity of the node: the
// outbox is locked, so nothing is read that it knows.
func (p *Reporter) Dropped(s model.NodeState, lost Lost) model.Report {
	p.lost.Store(true)
	from, to := lost.Ranges[0].From, lost.Ranges[len(lost.Ranges)-1].To
	s.Event, s.Dropped, s.DroppedFrom, s.DroppedTo, s.DroppedRanges = model.NodeDropped, lost.Reports, from, to, lost.Ranges
	s.Message = fmt.Sprintf("%d reports between %d and %d were dropped: there was no room for them, they were damaged, or no server takes them", lost.Reports, from, to)
	data, _ := json.Marshal(s) // plain fields always encode

	return model.Report{ID: ksuid.New().String(), Time: s.At, Kind: model.KindNode, Outcome: model.Outcome(model.NodeDropped), Type: model.ProtocolNode, Data: data}
}

const (
	// reportAgain is after how long a result is reported again although it is the
	// same: a day of reports has all that fails, and the stream keeps them for longer.
	reportAgain = 24 * time.Hour
	// maxRuns bounds the runs that a summary refers to.
	maxRuns = 10
)

// results holds the latest reported results of resources that are not in their desired state, by
// manifest. A restart clears them, so the agent reports them once more.
type results map[string]map[model.Ref]result

type result struct {
	digest [sha256.Size]byte
	runID  string
	at     time.Time
}

// limit forgets the results of the earliest run where they are from too many.
func (r results) limit(manifest string) {
	runs := map[string]bool{}
	for _, known := range r[manifest] {
		runs[known.runID] = true
	}
	if len(runs) > maxRuns {
		first := slices.Min(slices.Collect(maps.Keys(runs))) // a KSUID begins with its time
		maps.DeleteFunc(r[manifest], func(_ model.Ref, known result) bool { return known.runID == first })
	}
}

// repeated returns the run that reported the same result of the resource, and
// none where this result must be reported.
func (r results) repeated(t *model.Transaction, now time.Time) (runID string, ok bool) {
	known, ok := r[t.Manifest][t.Ref()]
	if !ok || t.Cause == model.CauseCommand || t.Cause == model.CauseRequest || now.Sub(known.at) >= reportAgain || known.digest != resultDigest(t) {
		return "", false
	}

	return known.runID, true
}

// note remembers a reported result. It forgets the resource if the result is stable or a completed
// change.
func (r results) note(t *model.Transaction, now time.Time) {
	switch t.Outcome() {
	case model.OutcomeStable, model.OutcomeChanged, model.OutcomeRefreshed:
		r.forget(t)
		return
	}
	if r[t.Manifest] == nil {
		r[t.Manifest] = map[model.Ref]result{}
	}
	r[t.Manifest][t.Ref()] = result{resultDigest(t), t.RunID, now}
}

func (r results) forget(t *model.Transaction) { delete(r[t.Manifest], t.Ref()) }

// resultDigest returns the digest of a result without what distinguishes two runs.
func resultDigest(t *model.Transaction) [sha256.Size]byte {
	same := *t
	same.EventID, same.Timestamp, same.Duration, same.Drift = "", time.Time{}, 0, nil
	same.RunID, same.Cause, same.CorrelationID = "", "", ""
	same.HealthCheck = slices.Clone(t.HealthCheck)
	for i := range same.HealthCheck {
		same.HealthCheck[i].Duration = 0
	}
	data, _ := json.Marshal(same) // it was encoded as a report

	return sha256.Sum256(data)
}
