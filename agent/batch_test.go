package agent

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

func TestNext(t *testing.T) {
	start := time.Unix(1000, 0)
	single := func() model.Report { return model.Report{RunID: "a", Time: start} }
	batched := func(run string, after time.Duration) model.Report {
		return model.Report{RunID: run, Time: start.Add(after), Batch: true, Data: json.RawMessage(strings.Repeat("x", 1000))}
	}
	many := func(n int) (out []model.Report) {
		for range n {
			out = append(out, batched("a", 0))
		}
		return out
	}
	for name, c := range map[string]struct {
		reports     []model.Report
		n           int
		batch, open bool
	}{
		"none":                            {nil, 0, false, false},
		"single ones":                     {[]model.Report{single(), single()}, 2, false, false},
		"single ones before a batch":      {append([]model.Report{single()}, many(3)...), 1, false, false},
		"as many as there may be":         {many(maxReports), maxReports, true, false},
		"the run may go on":               {many(3), 3, true, true},
		"a summary behind it":             {append(many(3), single()), 3, true, false},
		"another run behind it":           {append(many(3), batched("b", 0)), 3, true, false},
		"within a second":                 {append(many(3), batched("a", time.Second), single()), 4, true, false},
		"later than a second":             {append(many(3), batched("a", time.Second+1)), 3, true, false},
		"one alone is no batch":           {append(many(1), single()), 1, false, false},
		"one alone that may become one":   {many(1), 1, false, true},
		"a clock that was set back":       {append(many(1), batched("a", -time.Hour), single()), 2, true, false},
		"one that is larger than a batch": {append([]model.Report{{RunID: "a", Time: start, Batch: true, Data: make([]byte, 1<<20)}}, many(3)...), 1, false, false},
		"a larger one behind":             {append(many(2), model.Report{RunID: "a", Time: start, Batch: true, Data: make([]byte, 1<<20)}), 2, true, false},
	} {
		n, batch, open := next(c.reports, 512<<10)
		if n != c.n || batch != c.batch || open != c.open {
			t.Errorf("%s: %d, batch %v, open %v", name, n, batch, open)
		}
	}
	const room = 50*(1000+maxEnvelope) + 1
	if n, batch, open := next(many(100), room); n != 50 || !batch || open {
		t.Errorf("in a message with room for 50: %d, batch %v, open %v", n, batch, open)
	}
}

func TestResults(t *testing.T) {
	at := time.Unix(1000, 0)
	failed := func(run string, change func(*model.Transaction)) *model.Transaction {
		tx := &model.Transaction{
			RunID: run, EventID: run, Timestamp: at, Duration: time.Second, Manifest: "group.all.a", Type: "file", Name: "/x",
			Failed: true, Errors: []string{"no"}, Cause: model.CauseManifest, HealthCheck: []model.HealthResult{{Name: "c", Duration: 1}},
		}
		change(tx)

		return tx
	}
	for name, c := range map[string]struct {
		change func(*model.Transaction)
		same   bool
	}{
		"the same":                {func(*model.Transaction) {}, true},
		"of another cause":        {func(tx *model.Transaction) { tx.Cause = model.CauseSchedule }, true},
		"slower":                  {func(tx *model.Transaction) { tx.Duration, tx.HealthCheck[0].Duration = 5, 7 }, true},
		"later":                   {func(tx *model.Transaction) { tx.EventID, tx.Timestamp = "other", at.Add(1) }, true},
		"requested":               {func(tx *model.Transaction) { tx.Cause = model.CauseCommand }, false},
		"for another reason":      {func(tx *model.Transaction) { tx.Errors = []string{"never"} }, false},
		"another check":           {func(tx *model.Transaction) { tx.HealthCheck[0].Output = "down" }, false},
		"of another revision":     {func(tx *model.Transaction) { tx.Revision = 2 }, false},
		"of another digest":       {func(tx *model.Transaction) { tx.Digest = "sha256-other" }, false},
		"declared elsewhere":      {func(tx *model.Transaction) { tx.Source.Line = 7 }, false},
		"of another manifest":     {func(tx *model.Transaction) { tx.Manifest = "node.web01.a" }, false},
		"of another resource":     {func(tx *model.Transaction) { tx.Name = "/y" }, false},
		"with another prediction": {func(tx *model.Transaction) { tx.NoopMessage = "Would have" }, false},
	} {
		known := results{}
		known.note(failed("run1", func(*model.Transaction) {}), at)
		runID, same := known.repeated(failed("run2", c.change), at.Add(time.Hour))
		if same != c.same || same && runID != "run1" {
			t.Errorf("%s: same is %v, as run %q", name, same, runID)
		}
	}
	known := results{}
	known.note(failed("run1", func(*model.Transaction) {}), at)
	known.note(failed("run2", func(tx *model.Transaction) { tx.Failed, tx.Changed = false, true }), at)
	if _, same := known.repeated(failed("run3", func(*model.Transaction) {}), at); same {
		t.Error("what was repaired between is the same")
	}
}

// A summary refers to a few runs, whatever fails since when.
func TestResultsAreOfFewRuns(t *testing.T) {
	known, runs := results{}, map[string]bool{}
	for i := range 3 * maxReporters {
		known.limit("a")
		run := string(rune('A' + i))
		known.note(&model.Transaction{Manifest: "a", RunID: run, Name: run, Failed: true}, time.Unix(0, 0))
	}
	known.limit("a")
	for _, r := range known["a"] {
		runs[r.runID] = true
	}
	if len(runs) != maxReporters || runs["A"] {
		t.Errorf("results of the runs %v", runs)
	}
}
