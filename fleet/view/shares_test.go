package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// TestWhatIsNotStoredIsSaid names the nodes with an incomplete history, on the page of a node only that node,
// until the missing part is older than the retention.
func TestWhatIsNotStoredIsSaid(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{Keep: time.Hour})
	for _, node := range []string{"web01", "web02"} {
		f.SetNode(model.Node{NodeState: model.NodeState{Node: node}})
	}
	share := func(node string, age time.Duration) view.Share {
		return view.Share{Node: node, Name: node + " (run stable)", Oldest: time.Now().Add(-age)}
	}
	f.SetShares(240, []view.Share{share("web02", 2*time.Hour), share("web01", time.Minute)})
	for name, p := range map[string]view.Progress{
		"progress": f.Progress(), "overview": f.Overview().Progress, "events": f.Events(view.EventQuery{}).Progress, "node": detail(f, "web01").Progress,
	} {
		if got := p.Incomplete; len(got) != 1 || !strings.Contains(got[0], "newest 240 ") || !strings.Contains(got[0], ": web01 (run stable) before 20") || strings.Contains(got[0], "web02") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := detail(f, "web02").Progress.Incomplete; len(got) != 0 {
		t.Errorf("of another node: %q", got)
	}
	var many []view.Share
	for i := range 10 {
		many = append(many, share(fmt.Sprintf("n%d", 9-i), 0))
	}
	f.SetShares(240, many)
	if got := f.Progress().Incomplete; len(got) != 1 || !strings.Contains(got[0], ": n0 (") || !strings.HasSuffix(got[0], " and 6 more.") {
		t.Errorf("of many: %q", got)
	}
}

func detail(f *view.Fleet, node string) view.NodeDetail {
	d, _ := f.Node(node)

	return d
}
