package engine

import (
	"context"
	"sync"

	"github.com/musterfleet/muster/model"
)

// Shared is a Journal that several runs of a manifest use at the same time.
type SharedJournal struct {
	mu      sync.Mutex
	journal Journal
}

// NewShared returns a journal for several runs. Nobody else may use j.
func NewSharedJournal(j Journal) *SharedJournal { return &SharedJournal{journal: j} }

// Add is Add of the journal.
func (s *SharedJournal) Add(ctx context.Context, refs ...model.Ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.journal.Add(ctx, refs...)
}

// Clear is Clear of the journal.
func (s *SharedJournal) Clear(ctx context.Context, ref model.Ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.journal.Clear(ctx, ref)
}

// Pending is Pending of the journal.
func (s *SharedJournal) Pending() ([]model.Ref, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.journal.Pending()
}

// Reset is Reset of the journal.
func (s *SharedJournal) Reset(ctx context.Context, refs ...model.Ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.journal.Reset(ctx, refs...)
}
