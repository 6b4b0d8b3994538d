package nodes

import (
	"fmt"
	"slices"
	"testing"

	"github.com/musterfleet/muster/model"
)

// TestStatesAreInOrder: of any number of states, each is there once, by name.
func TestStatesAreInOrder(t *testing.T) {
	t.Parallel()
	for _, count := range []int{0, 1, 2, 3, 4, 5, 1000} {
		states, want := map[string]*stored{}, []string{}
		for i := range count {
			name := fmt.Sprintf("web%d", i*7919%1009)
			want = append(want, name)
			states[name] = &stored{Node: model.Node{NodeState: model.NodeState{Node: name}}}
		}
		slices.Sort(want)
		got := []string{}
		for _, s := range inOrder(states) {
			got = append(got, s.Node.Node)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d: %v", count, got)
		}
	}
}
