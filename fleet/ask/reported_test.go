package ask_test

import (
	"context"
	"iter"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/model"
)

// TestSendReadsReports: if a node acknowledged the request and no longer answers, its result is read from its reports,
// before the time is over.
func TestSendReadsReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // time advances when all answers are read
		a := &network{held: true, answers: map[string][]model.EnsureResponse{"group.web": {
			response("a", model.EnsureDone), response("b", model.EnsureRunning), response("c", model.EnsureAcknowledged),
		}}}
		var asked [][]string
		var ended bool
		e := ask.Request{ID: "1", Protocol: model.ProtocolEnsureResponse, Network: a, Targets: toWeb, Known: known("a", "b", "c", "d"), Silence: time.Millisecond, Quiet: time.Millisecond,
			Reports: func(ctx context.Context, nodes []string, _ bool) iter.Seq2[model.Report, error] {
				slices.Sort(nodes)
				asked = append(asked, nodes)
				return func(yield func(model.Report, error) bool) {
					report := func(node string, phase model.EnsurePhase) bool {
						return yield(resultOf(t, node, "1", response(node, phase)), nil)
					}
					if report("b", model.EnsureFailed) && report("a", model.EnsureFailed) && report("c", model.EnsureDone) {
						<-ctx.Done()
					}
					ended = true
				}
			}}
		got, err := e.Send(t.Context())
		want := map[string]ask.State{"a": ask.StateDone, "b": ask.StateFailed, "c": ask.StateDone, "d": ask.StateUnreachable}
		if err != nil || !reflect.DeepEqual(got.NodeStates(), want) || !ended {
			t.Errorf("got %+v %v, ended: %t", got, err, ended)
		}
		if len(asked) != 1 || !slices.Equal(asked[0], []string{"b", "c", "d"}) {
			t.Errorf("reports were read of %v", asked)
		}
	})
}

// TestSendReadsNoReports: reports are not read for nodes that do not answer or have finished.
func TestSendReadsNoReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // time advances when all answers are read
		a := &network{held: true, answers: map[string][]model.EnsureResponse{"group.web": {response("a", model.EnsureDone)}}}
		e := ask.Request{ID: "1", Protocol: model.ProtocolEnsureResponse, Network: a, Targets: toWeb, Known: known("a", "b"), Silence: 20 * time.Millisecond, Quiet: time.Millisecond,
			Reports: func(context.Context, []string, bool) iter.Seq2[model.Report, error] {
				t.Error("reports are read")
				return func(func(model.Report, error) bool) {}
			}}
		if got, err := e.Send(t.Context()); err != nil || !slices.Equal(got.Missing, []string{"b"}) {
			t.Errorf("got %+v %v", got, err)
		}
	})
}
