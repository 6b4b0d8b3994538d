package pkg

import (
	"context"
	"errors"
	"time"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/resources/resource"
)

// refreshes is the folder of the records of NoteRefresh.
const refreshes = "refreshes"

// Refreshed returns the time of the last refresh of a provider's lists, from the record of NoteRefresh
// or the stamp files of the package manager. The zero time means never.
func Refreshed(env resource.Env, provider string, stamps ...string) (time.Time, error) {
	last, _, err := host.Recall[time.Time](env.Host, refreshes, provider)
	if err != nil {
		return last, err
	}
	for _, path := range stamps {
		entry, err := env.Host.Look(path)
		if err != nil {
			return last, err
		}
		if entry.Kind == files.File && entry.ModTime.After(last) {
			last = entry.ModTime
		}
	}

	return last, nil
}

// NoteRefresh records when a refresh began, if there is a state directory. Package managers do not touch
// current lists, so their times are no proof.
func NoteRefresh(ctx context.Context, env resource.Env, provider string, began time.Time) error {
	if err := env.Host.Remember(ctx, refreshes, provider, began); !errors.Is(err, state.ErrNone) {
		return err
	}

	return nil
}
