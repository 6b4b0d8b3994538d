package ask_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
)

// pinger has nodes that answer, by target, a second after each other.
type pinger struct {
	nodes map[fleet.Target][]string
	err   error
}

func (p pinger) Ping(ctx context.Context, target fleet.Target) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, node := range p.nodes[target] {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return
			}
			if !yield(node, nil) {
				return
			}
		}
		if p.err != nil {
			yield("", p.err)
			return
		}
		<-ctx.Done() // somebody may answer yet
	}
}

func TestPing(t *testing.T) {
	all, broken := fleet.Target{Group: "all"}, errors.New("broken")
	for name, c := range map[string]struct {
		targets []fleet.Target
		pinger  pinger
		known   []string
		here    []string
		missing []string
		took    time.Duration
		err     error
	}{
		"all answer":          {targets: []fleet.Target{all}, pinger: pinger{nodes: map[fleet.Target][]string{all: {"b", "a"}}}, known: []string{"a", "b"}, here: []string{"b", "a"}, took: 2 * time.Second},
		"one does not":        {targets: []fleet.Target{all}, pinger: pinger{nodes: map[fleet.Target][]string{all: {"a"}}}, known: []string{"a", "b", "c"}, here: []string{"a"}, missing: []string{"b", "c"}, took: time.Minute},
		"nobody is known":     {targets: []fleet.Target{all}, pinger: pinger{nodes: map[fleet.Target][]string{all: {"x"}}}, here: []string{"x"}, took: time.Minute},
		"a name is unknown":   {targets: []fleet.Target{{Node: "x"}}, pinger: pinger{}, known: []string{"a"}, missing: []string{"x"}, took: time.Minute},
		"in several targets":  {targets: []fleet.Target{{Node: "a"}, all}, pinger: pinger{nodes: map[fleet.Target][]string{all: {"a", "b"}, {Node: "a"}: {"a"}}}, known: []string{"a", "b"}, here: []string{"a", "b"}, took: 2 * time.Second},
		"the question failed": {targets: []fleet.Target{all}, pinger: pinger{nodes: map[fleet.Target][]string{all: {"a"}}, err: broken}, known: []string{"a", "b"}, here: []string{"a"}, missing: []string{"b"}, took: time.Second, err: broken},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				began := time.Now()
				var answered []string
				p, err := ask.Ping(ctx, c.pinger, c.targets, known(c.known...), func(p ask.Pong) { answered = append(answered, p.Node) })
				var here []string
				for i, a := range p.Answers {
					here = append(here, a.Node)
					if at := time.Duration(i+1) * time.Second; a.Took.Std() > at || a.Took.Std() < time.Second {
						t.Errorf("%s took %s", a.Node, a.Took)
					}
				}
				if !slices.Equal(here, c.here) || !slices.Equal(answered, c.here) || !slices.Equal(p.Missing, c.missing) || !errors.Is(err, c.err) {
					t.Errorf("answered %v (%v), missing %v, %v", here, answered, p.Missing, err)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
			})
		})
	}
}
