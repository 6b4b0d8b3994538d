package reporting

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
)

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

// result is a reported result.
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

// forget removes the remembered result of a resource.
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
