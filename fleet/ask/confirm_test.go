package ask_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/model"
)

// lister lists the nodes by a function.
type lister func() ([]model.Node, error)

func (l lister) Nodes(context.Context) ([]model.Node, error) { return l() }

// TestAwait waits for nodes that confirm, reject and never answer a pause.
func TestAwait(t *testing.T) {
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
		nodes := []model.Node{
			{NodeState: model.NodeState{Node: "paused", Paused: &model.Paused{From: key, At: change.Pause.At}}},
			{NodeState: model.NodeState{Node: "rejecting", RejectedControl: map[string]string{key: "not signed"}}},
			stale, {NodeState: model.NodeState{Node: "waiting"}},
		}
		began := time.Now()
		var pending []string
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := ask.Await(ctx, all, lister(func() ([]model.Node, error) { return nodes, nil }), func(names []string) {
			pending = append(pending, fmt.Sprintf("%s %s", time.Since(began).Round(time.Second), names))
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []ask.State{ask.StateDone, ask.StateFailed, ask.StateFailed, ask.StatePending} {
			if all[i].State != want {
				t.Errorf("%s is %s, want %s", all[i].Node, all[i].State, want)
			}
		}
		// A rejection from before the change counts only after a while.
		if pending = slices.Compact(pending); pending[0] != "0s [stale waiting]" || !slices.Contains(pending, "1s [stale waiting]") || !slices.Contains(pending, "2s [waiting]") || time.Since(began) != time.Minute {
			t.Errorf("pending %v, ended after %s", pending[:min(len(pending), 8)], time.Since(began))
		}
	})
}

// TestAwaitReturnsErrors of reading, except after the end of the context.
func TestAwaitReturnsErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	nodes := lister(func() ([]model.Node, error) { return nil, broken })
	ctx, cancel := context.WithCancel(t.Context())
	if err := ask.Await(ctx, nil, nodes, nil); !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
	cancel()
	if err := ask.Await(ctx, nil, nodes, nil); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

// TestAwaitCallsOnPendingForPendingNodes calls Await without a pending node.
func TestAwaitCallsOnPendingForPendingNodes(t *testing.T) {
	t.Parallel()
	none := lister(func() ([]model.Node, error) { return nil, nil })
	if err := ask.Await(t.Context(), nil, none, func(names []string) { t.Errorf("called with %v", names) }); err != nil {
		t.Error(err)
	}
}
