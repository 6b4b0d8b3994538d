package ask_test

import (
	"context"
	"iter"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/model"
)

// TestEnsureReadsReports: where a node accepted the request and answers no more, its result is taken from what it
// reports, and nobody waits for the end of the time.
func TestEnsureReadsReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // time goes on once all answers are taken
		a := &asker{held: true, answers: map[fleet.Target][]model.EnsureResponse{{Group: "web"}: {
			response("a", model.EnsureDone), response("b", model.EnsureRunning), response("c", model.EnsureAcknowledged),
		}}}
		var asked [][]string
		var ended bool
		e := ask.Ensurer{Asker: a, Nodes: known("a", "b", "c", "d"), Silence: time.Millisecond, Quiet: time.Millisecond,
			Reported: func(ctx context.Context, nodes []string) iter.Seq[model.EnsureResponse] {
				slices.Sort(nodes)
				asked = append(asked, nodes)
				return func(yield func(model.EnsureResponse) bool) {
					if yield(response("b", model.EnsureFailed)) && yield(response("a", model.EnsureFailed)) && yield(response("c", model.EnsureDone)) {
						<-ctx.Done()
					}
					ended = true
				}
			}}
		got, err := e.Ensure(t.Context(), toWeb, model.EnsureRequest{ID: "1"})
		want := map[string]ask.State{"a": ask.StateDone, "b": ask.StateFailed, "c": ask.StateDone, "d": ask.StateUnreachable}
		if err != nil || !reflect.DeepEqual(got.NodeStates(), want) || !ended {
			t.Errorf("got %+v %v, ended: %t", got, err, ended)
		}
		if len(asked) != 1 || !slices.Equal(asked[0], []string{"b", "c", "d"}) {
			t.Errorf("reports were read of %v", asked)
		}
	})
}

// TestEnsureReadsNoReports: those of nodes that do not answer at all, or that have finished, are not read.
func TestEnsureReadsNoReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // time goes on once all answers are taken
		a := &asker{held: true, answers: map[fleet.Target][]model.EnsureResponse{{Group: "web"}: {response("a", model.EnsureDone)}}}
		e := ask.Ensurer{Asker: a, Nodes: known("a", "b"), Silence: 20 * time.Millisecond, Quiet: time.Millisecond,
			Reported: func(context.Context, []string) iter.Seq[model.EnsureResponse] {
				t.Error("reports are read")
				return func(func(model.EnsureResponse) bool) {}
			}}
		if got, err := e.Ensure(t.Context(), toWeb, model.EnsureRequest{ID: "1"}); err != nil || !slices.Equal(got.Missing, []string{"b"}) {
			t.Errorf("got %+v %v", got, err)
		}
	})
}
