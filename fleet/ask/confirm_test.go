package ask_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/model"
)

// TestWaiter waits for nodes that confirm, reject and never answer a pause.
func TestWaiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		key := "node.a.pause"
		change := ask.PauseChange{ControlKey: key, Pause: &model.Pause{At: time.Now()}}
		stale := model.Node{NodeState: model.NodeState{Node: "stale", RejectedControl: map[string]string{key: "old"}}}
		all := []*ask.Confirmation{}
		for _, n := range []model.Node{{NodeState: model.NodeState{Node: "paused"}}, {NodeState: model.NodeState{Node: "rejecting"}}, stale, {NodeState: model.NodeState{Node: "waiting"}}} {
			c := ask.NewConfirmation(change, n)
			all = append(all, &c)
		}
		began := time.Now()
		rejectedAt := map[string]time.Duration{}
		waiter := ask.Waiter{
			States: func(context.Context) (func(string) (model.Node, bool), error) {
				return func(name string) (model.Node, bool) {
					n := model.Node{NodeState: model.NodeState{Node: name}}
					switch name {
					case "paused":
						n.Paused = &model.Paused{From: key, At: change.Pause.At}
					case "rejecting":
						n.RejectedControl = map[string]string{key: "not signed"}
					case "stale":
						n = stale
					}
					return n, true
				}, nil
			},
			Pause: func(ctx context.Context) {
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			},
			OnChange: func(c *ask.Confirmation) { rejectedAt[c.Node] = time.Since(began) },
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := waiter.Wait(ctx, all); err != nil {
			t.Fatal(err)
		}
		for i, want := range []ask.State{ask.StateDone, ask.StateFailed, ask.StateFailed, ask.StatePending} {
			if all[i].State != want {
				t.Errorf("%s is %s, want %s", all[i].Node, all[i].State, want)
			}
		}
		// A rejection from before the change counts only after a while.
		if rejectedAt["rejecting"] != 0 || rejectedAt["stale"] != 2*time.Second || time.Since(began) != time.Minute {
			t.Errorf("rejected at %v, ended after %s", rejectedAt, time.Since(began))
		}
	})
}

// TestWaiterReturnsErrors of reading, except after the end of the context.
func TestWaiterReturnsErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	w := ask.Waiter{States: func(context.Context) (func(string) (model.Node, bool), error) { return nil, broken }}
	ctx, cancel := context.WithCancel(t.Context())
	if err := w.Wait(ctx, nil); !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
	cancel()
	if err := w.Wait(ctx, nil); err != nil {
		t.Errorf("after the end: %v", err)
	}
}
