package note

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// maxValue is the maximum size of a note in bytes.
const maxValue = 64 << 10

// Plain provides notes that are plain files.
type Plain struct{}

// Name returns plain.
func (Plain) Name() string { return "plain" }

// IsManageable reports true everywhere, with the best priority.
func (Plain) IsManageable(model.Facts, resource.Spec) (bool, int, error) { return true, 1, nil }

// Status reads the value. Anything but a regular file is an error.
func (Plain) Status(_ context.Context, env resource.Env, path string) (*State, error) {
	entry, err := env.Host.Look(path)
	if err != nil {
		return nil, err
	}
	state := &State{CommonState: model.CommonState{Ensure: model.EnsurePresent}}
	switch entry.Kind {
	case files.Absent:
		state.Ensure = model.EnsureAbsent
		return state, nil
	case files.File:
	default:
		return nil, fmt.Errorf("%s is a %s, not a note", path, entry.Kind)
	}
	text, err := files.Read(path, maxValue)
	state.Value = strings.TrimSuffix(string(text), "\n")

	return state, err
}

// Set writes the value, atomically.
func (Plain) Set(ctx context.Context, env resource.Env, path, value string) error {
	attrs := files.Attrs{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Mode: 0o644}

	return env.Host.Write(ctx, path, strings.NewReader(value+"\n"), attrs)
}

// Unset removes the note.
func (Plain) Unset(_ context.Context, env resource.Env, path string) error {
	return env.Host.Remove(path)
}
