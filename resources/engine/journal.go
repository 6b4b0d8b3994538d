package engine

import (
	"context"
	"errors"

	"github.com/musterfleet/muster/model"
)

// Journal keeps the pending refreshes of one manifest.
type Journal interface {
	// Add is durable when it returns.
	Add(ctx context.Context, refs ...model.Ref) error
	// Clear removes one; a refresh that is not pending is no error.
	Clear(ctx context.Context, ref model.Ref) error
	// Pending returns those of earlier runs. Its error wraps ErrDamaged when they
	// cannot be known any more.
	Pending() ([]model.Ref, error)
	// Reset makes refs all that are pending, whatever the journal held.
	Reset(ctx context.Context, refs ...model.Ref) error
}

// ErrDamaged is a journal that cannot be read any more.
var ErrDamagedJournal = errors.New("the journal of pending refreshes is damaged")
