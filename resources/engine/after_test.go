package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestFailedChangeSaysTheStateFoundAfterwards checks the reported state and the error of a failed
// change.
func TestFailedChangeSaysTheStateFoundAfterwards(t *testing.T) {
	for name, c := range map[string]struct{ line, ensure, value, want string }{
		"the change fails":       {"thing a value=1 fail_at=apply", "present", "half", "apply failed"},
		"that has a guard":       {"guarded a value=1 fail_at=apply guard=open", "present", "half", "apply failed"},
		"in a batch":             {"wide a value=1 fail_at=apply", "present", "half", "apply failed"},
		"in one transaction":     {"many a value=1 fail_at=apply", "present", "half", "apply failed"},
		"at every try":           {"thing a value=1 fail_at=apply retry=1", "present", "half", "apply failed"},
		"it is not verified":     {"thing a value=1 fail_at=verify", "present", "half", "still due"},
		"in its time":            {"thing a value=1 fail_at=hang timeout=10ms", "present", "half", "timed out after 10ms"},
		"the look fails as well": {"thing a value=1 fail_at=apply missing=open", "", "", "apply failed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.opts.Full = true
			w.m.set("open", "1")
			w.hook = func(event, _ string) {
				if event != "apply" {
					return
				}
				w.m.set("a", "half")
				if strings.Contains(c.line, "missing") {
					w.m.set("open", "")
				}
			}
			w.run(w.graph(c.line))
			tx := w.txs[w.order[0]]
			var got struct{ Value string }
			if err := json.Unmarshal(tx.Status, &got); err != nil && c.value != "" {
				t.Fatal(err)
			}
			if !tx.Failed || tx.FinalEnsure != c.ensure || got.Value != c.value || len(tx.Errors) != 1 {
				t.Errorf("%+v, status %s", tx, tx.Status)
			}
			contains(t, tx.Errors[0], c.want)
		})
	}
}

// TestNothingIsSaidOfAStateThatNobodyLookedAt checks an interrupted run, which reports no state.
func TestNothingIsSaidOfAStateThatNobodyLookedAt(t *testing.T) {
	w := newWorld(t)
	w.opts.Full = true
	ctx, cancel := context.WithCancelCause(t.Context())
	w.hook = func(event, _ string) {
		if event == "apply" {
			cancel(errors.New("killed"))
		}
	}
	w.runCtx(ctx, w.graph("thing a value=1 fail_at=hang", "thing b value=1"))
	w.outcomes("thing#a failed", "thing#b notrun")
	if tx := w.txs["thing#a"]; tx.FinalEnsure != "" || tx.Status != nil {
		t.Errorf("%+v", tx)
	}
	contains(t, w.txs["thing#a"].Errors[0], "killed")
}

// TestTimeOfOneIsNotThatOfOthers checks resources that are observed together.
func TestTimeOfOneIsNotThatOfOthers(t *testing.T) {
	w := newWorld(t)
	w.run(w.graph("svc a value=1 makes=slow", "many b value=1 fail_at=hang-look guard=slow timeout=10ms", "many c value=1", "many d value=1"))
	w.outcomes("svc#a changed", "many#b failed", "many#c changed", "many#d changed")
	contains(t, w.txs["many#b"].Errors[0], "timed out after 10ms")
}
