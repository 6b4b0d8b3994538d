package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// TestAutomaticEdgesAreAllThatFit builds random resources: no edge closes a cycle, and each need
// without an edge would close one.
func TestAutomaticEdgesAreAllThatFit(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		var all []*resource.Resource
		needs := map[string][]string{}
		count := 2 + r.IntN(30)
		for i := range count {
			name := fmt.Sprintf("rel#%d", i)
			line := fmt.Sprintf("rel %d value=1", i)
			for range r.IntN(3) {
				needs[name] = append(needs[name], fmt.Sprint("rel#", r.IntN(count)))
			}
			for k, need := range needs[name] {
				line += []string{" needs=value:", ",value:"}[min(k, 1)] + need[len("rel#"):]
			}
			if i > 0 && r.IntN(3) == 0 {
				line += fmt.Sprintf(" require=rel#%d", r.IntN(i))
			}
			all = append(all, w.res(line))
		}
		g, err := plan.Build(all, nil)
		if err != nil || g.Len() != count {
			t.Fatalf("seed %d: %v, %d of %d", seed, err, g.Len(), count)
		}
		after := map[string][]string{}
		for _, step := range g.Steps() {
			for _, e := range step.Waits {
				after[e.From.String()] = append(after[e.From.String()], e.To.String())
			}
		}
		for n, wanted := range needs {
			for _, p := range wanted {
				if n != p && !slices.Contains(after[p], n) && !leads(after, n, p) {
					t.Errorf("seed %d: %s does not come after %s", seed, n, p)
				}
			}
		}
	}
}

// leads reports whether a path connects two nodes.
func leads(after map[string][]string, from, to string) bool {
	seen := map[string]bool{from: true}
	for todo := []string{from}; len(todo) > 0; {
		n := todo[0]
		todo = todo[1:]
		if n == to {
			return true
		}
		for _, next := range after[n] {
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}

	return false
}

// BenchmarkBackwardEdges orders resources that wait for each other and need the last resource.
func BenchmarkBackwardEdges(b *testing.B) {
	const count = 20_000
	typ := resource.Of[*spec, *state, provider](relating{newThing(newMachine(), "rel", nil)}, plain{})
	var all []*resource.Resource
	for i := range count {
		s := &spec{Common: model.Common{Name: fmt.Sprint(i)}, Needs: []string{"value:last"}}
		if i > 0 {
			s.Require = []model.Ref{all[i-1].Ref()}
		}
		all = append(all, &resource.Resource{Type: typ, Spec: s})
	}
	all = append(all, &resource.Resource{Type: typ, Spec: &spec{Common: model.Common{Name: "last"}}})
	for b.Loop() {
		if _, err := plan.Build(all, nil); err != nil {
			b.Fatal(err)
		}
	}
}
