package engine_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestConcurrentRunsLoseNoRefresh adds and clears refreshes in two concurrent runs.
func TestConcurrentRunsLoseNoRefresh(t *testing.T) {
	h := hosttest.New(t)
	s := engine.NewFileJournal(h, filepath.Join(t.TempDir(), "state"), "m")
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			for n := range 20 {
				ref := model.Ref{Type: "exec", Name: fmt.Sprint(i, n)}
				if err := s.Add(t.Context(), ref); err != nil {
					t.Error(err)
				}
				if n%2 == 0 {
					continue
				}
				if err := s.Clear(t.Context(), ref); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if pending, err := s.Pending(); len(pending) != 20 || err != nil {
		t.Errorf("%d are pending (%v), want 20", len(pending), err)
	}
	if err := s.Reset(t.Context()); err != nil {
		t.Error(err)
	}
	if pending, err := s.Pending(); len(pending) != 0 || err != nil {
		t.Errorf("after a reset: %v, %v", pending, err)
	}
}
