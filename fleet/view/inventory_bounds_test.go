package view_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// TestSlowTarget: an expensive expression ends and blocks no other selection.
func TestSlowTarget(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	f.SetPatience(50 * time.Millisecond)
	groups := make([]string, 20)
	for i := range groups {
		groups[i] = fmt.Sprint("group-", i)
	}
	for i := range 2000 {
		f.SetNode(model.Node{NodeState: model.NodeState{Node: fmt.Sprint("web", i), Groups: slices.Clone(groups)}})
	}
	slow := strings.Repeat("any(groups, ", 3) + strings.TrimSuffix(strings.Repeat(`node matches "x$" || `, 200), "|| ") + ")))"
	if _, err := f.Nodes(view.NodeQuery{On: slow}); !errors.Is(err, view.ErrSlowTarget) {
		t.Error(err)
	}
	f.SetPatience(time.Minute)
	if p, err := f.Nodes(view.NodeQuery{On: `group("group-3")`}); err != nil || p.Matching != 2000 {
		t.Errorf("%d, %v", p.Matching, err)
	}
}
