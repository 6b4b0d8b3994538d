package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
)

const (
	// replacedEvery is the pause between two checks of what is assigned, and checksPerPause bounds what
	// part of the time they take.
	replacedEvery  = time.Second
	checksPerPause = 20
)

// replacedError is a revision that another one replaced, so that it is not in force.
type replacedError struct {
	revision uint64
	by       model.Entry
}

// Error names both, and who wrote the later one.
func (r *replacedError) Error() string {
	what := "was replaced by revision"
	if r.by.Deleted {
		what = "was removed with revision"
	}
	text := fmt.Sprintf("%s revision %d %s %d", r.by.Key, r.revision, what, r.by.Revision)
	if r.by.By != "" {
		text += " of " + print.OneLine(r.by.By)
	}

	return text
}

// replaced returns the error of the first revision that must be in force and was replaced, or that of reading.
func (g Goal) replaced(ctx context.Context, s *Store) error {
	if !g.InForce {
		return nil
	}
	for _, key := range g.Keys {
		e, err := s.Get(ctx, key)
		switch {
		case err == nil && e.Revision == g.Revisions[key]:
			continue
		case err != nil && !errors.Is(err, model.ErrNotFound):
			return err
		}
		all, err := s.History(ctx, key)
		if err != nil && !errors.Is(err, model.ErrNotFound) {
			return err
		}
		if by, is := assign.Replacement(all, g.Revisions[key]); is {
			return &replacedError{g.Revisions[key], by}
		}
	}

	return nil
}

// watched lists nodes, and checks now and then that a goal was not replaced.
type watched struct {
	*Store
	goal Goal
	next time.Time
}

// Nodes returns all nodes, or the error that the goal was replaced.
func (w *watched) Nodes(ctx context.Context) ([]model.Node, error) {
	if began := time.Now(); !began.Before(w.next) {
		if err := w.goal.replaced(ctx, w.Store); err != nil {
			return nil, err
		}
		w.next = time.Now().Add(max(replacedEvery, checksPerPause*time.Since(began)))
	}

	return w.Store.Nodes(ctx)
}

// isLate reports whether a status is not that of the revision itself: the goal may have been replaced.
func isLate(s fleet.RolloutStatus) bool {
	return s.Status != fleet.StatusUpToDate || s.Current != s.Desired
}
