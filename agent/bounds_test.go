package agent

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/hosttest"
)

func TestReportsFitIntoAMessage(t *testing.T) {
	big := strings.Repeat("\"\\é", 1<<20)
	tx := &model.Transaction{Type: "file", Name: "/x", Failed: true, Properties: json.RawMessage(`{"a": "` + strings.Repeat("x", 1<<20) + `"}`), Errors: []string{big}}
	for range 500 {
		tx.Changes = append(tx.Changes, model.Change{Action: "store", Message: "Would have updated the file", Diff: big, From: big, To: big})
	}
	short := boundTransaction(tx, maxReport)
	data, err := json.Marshal(short)
	if err != nil || len(data) > maxReport {
		t.Errorf("%d bytes are left (%v)", len(data), err)
	}
	if short.Name != "/x" || !short.Failed || !strings.HasSuffix(short.Errors[0], "(cut)") || short.Changes[0].Message == "" {
		t.Errorf("what matters is gone: %.300s", data)
	}
	if len(tx.Changes) != 500 || tx.Properties == nil || tx.Errors[0] != big {
		t.Error("the transaction itself was changed")
	}
	small := &model.Transaction{Name: "/x", Properties: json.RawMessage(`{}`)}
	if boundTransaction(small, maxReport) != small {
		t.Error("a small one is copied")
	}

	var errs []string
	for i := range 5000 {
		errs = append(errs, fmt.Sprint(i, strings.Repeat("x", 1<<13)))
	}
	bound := boundErrors(errs, maxReport)
	if len(bound) != maxErrors+1 || bound[maxErrors] != "and 4900 more" || len(bound[0]) > maxError+20 {
		t.Errorf("%d errors, the last is %q", len(bound), bound[len(bound)-1])
	}
}

// TestWhatJSONMakesLongerFitsIntoAMessage: one byte becomes six.
func TestWhatJSONMakesLongerFitsIntoAMessage(t *testing.T) {
	for _, limit := range []int{maxReport, 64 << 10} {
		for _, hard := range []string{"<", "\x01", "\"", "\xff", "\u2028", "é"} {
			long := strings.Repeat(hard, 8<<10)
			var errs []string
			state := model.NodeState{Manifests: map[string]model.ManifestState{}}
			tx := &model.Transaction{NoopMessage: long, SkipReason: long}
			for i := range 150 {
				errs = append(errs, long)
				tx.Changes = append(tx.Changes, model.Change{Diff: long, From: long, To: long, Message: long})
				tx.HealthCheck = append(tx.HealthCheck, model.HealthResult{Name: "x", Output: long})
				state.Manifests[fmt.Sprint("group.all.", i)] = model.ManifestState{Late: cut(long), Error: cut(long)}
			}
			tx.Errors = errs
			for what, document := range map[string]any{
				"a run":         &model.Run{Errors: boundErrors(errs, limit)},
				"a transaction": boundTransaction(tx, limit),
				"a state":       boundState(state, limit),
			} {
				if b, err := json.Marshal(document); err != nil || len(b) > limit {
					t.Errorf("%s of %q has %d bytes, at most %d fit (%v)", what, hard, len(b), limit, err)
				}
			}
			if !utf8.ValidString(cut(long)) || len(cut(long)) > maxText+len(cutMark) {
				t.Errorf("%q is cut to %d bytes", hard, len(cut(long)))
			}
		}
	}
}

func TestWeightiestCauseAndFirstTime(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	order := []model.Cause{model.CauseSchedule, model.CauseDrift, model.CauseHealth, model.CauseCommand, model.CauseManifest}
	for i, light := range order {
		for _, heavy := range order[i:] {
			for _, got := range []wake{
				wake{light, early}.over(wake{heavy, late}),
				wake{heavy, late}.over(wake{light, early}),
			} {
				if got.cause != heavy || got.at != early {
					t.Errorf("%s at 1 and %s at 2 give %+v", light, heavy, got)
				}
			}
		}
	}
	if got := (wake{model.CauseSchedule, late}).over(wake{}); got.cause != model.CauseSchedule || got.at != late {
		t.Errorf("nothing changes it to %+v", got)
	}
	q := newQueue()
	q.run("a", wake{model.CauseDrift, early})
	q.run("a", wake{model.CauseManifest, late})
	q.assignmentsChanged()
	if len(q.slot) != 1 {
		t.Error("three wakes are not one")
	}
	if w := q.take(); w.due["a"] != (wake{model.CauseManifest, early}) || !w.assignments || w.retry {
		t.Errorf("took %+v", w)
	}
	if w := q.take(); len(w.due) != 0 || w.assignments {
		t.Errorf("what was taken is there again: %+v", w)
	}
}

func TestBackoff(t *testing.T) {
	var b backoff
	for i := range 40 {
		d, full := b.next(), min(backoffFirst<<min(i, 20), backoffMost)
		if d < full/2 || d > full*3/2 {
			t.Errorf("try %d waits %s", i, d)
		}
	}
	b.reset()
	if d := b.next(); d > 2*backoffFirst {
		t.Errorf("after a success it waits %s", d)
	}
}

func TestTooManyRequestsAreForgotten(t *testing.T) {
	s, err := openAsks(hosttest.New(t), t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for i := range askMost + 2 {
		s.known[fmt.Sprint(i)] = start.Add(time.Duration(i))
	}
	s.open["0"] = &ask{}
	s.prune(start)
	if len(s.known) != askMost-askMost/10+1 {
		t.Errorf("%d are known", len(s.known))
	}
	for name, want := range map[string]bool{"0": true, "1": false, fmt.Sprint(askMost): true} {
		if _, known := s.known[name]; known != want {
			t.Errorf("request %s is known: %v", name, known)
		}
	}
}
