package pkg

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// Refreshed returns when the package lists of a provider were last refreshed,
// by the note of NoteRefresh or the stamp files of the package manager; the
// zero time means never.
func Refreshed(env resource.Env, provider string, stamps ...string) (time.Time, error) {
	if note := noteOf(env, provider); note != "" {
		stamps = append(stamps, note)
	}
	var last time.Time
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

// NoteRefresh records a refresh in the state directory: package managers do not
// touch lists that are up to date.
func NoteRefresh(ctx context.Context, env resource.Env, provider string) error {
	note := noteOf(env, provider)
	if note == "" {
		return nil
	}
	if err := env.Host.Write(ctx, note, strings.NewReader(""), files.OwnAttrs(0o600)); err != nil {
		return fmt.Errorf("could not record the refresh of the package lists: %w", err)
	}

	return nil
}

func noteOf(env resource.Env, provider string) string {
	if env.Host.StateDir() == "" {
		return ""
	}

	return filepath.Join(env.Host.StateDir(), "refreshed-"+provider)
}
