package reporting

import (
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

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
	for i := range 3 * maxRuns {
		known.limit("a")
		run := string(rune('A' + i))
		known.note(&model.Transaction{Manifest: "a", RunID: run, Name: run, Failed: true}, time.Unix(0, 0))
	}
	known.limit("a")
	for _, r := range known["a"] {
		runs[r.runID] = true
	}
	if len(runs) != maxRuns || runs["A"] {
		t.Errorf("results of the runs %v", runs)
	}
}
