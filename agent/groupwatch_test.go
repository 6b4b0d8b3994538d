package agent

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/musterfleet/muster/model"
)

// watched records the last groups.
type watched struct {
	Assignments
	mu     sync.Mutex
	groups []string
}

func (w *watched) SetGroups(groups []string) {
	runtime.Gosched() // as where its lock is taken
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups = groups
}

// TestGroupsChangeAtOnce: if a reload and an operator change the groups at the same time, the watches follow
// the result of both.
func TestGroupsChangeAtOnce(t *testing.T) {
	t.Parallel()
	for i := range 10_000 {
		w := &watched{}
		a := &operators{config: &settings{}, assignments: w}
		var both sync.WaitGroup
		both.Go(func() {
			a.config.setGroups(model.Groups{Groups: []string{fmt.Sprintf("operated%d", i)}})
			a.watchGroups()
		})
		both.Go(func() {
			a.config.apply(Config{Groups: []string{"own"}})
			a.watchGroups()
		})
		both.Wait()
		if want := a.config.get().Groups; !slices.Equal(w.groups, want) {
			t.Fatalf("%d: watched for %q, want %q", i, w.groups, want)
		}
	}
}
