package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// store is the fleet, with the look-ups of its assignments.
type store struct{ *fleetcli.Store }

func open(ctx context.Context, env *cli.Env) (*store, error) {
	s, err := fleetcli.Open(ctx, env)

	return &store{s}, err
}

// list returns all assignments, or those of a name or key.
func (s *store) list(ctx context.Context, families []string, nameOrKey string) ([]model.Entry, error) {
	all, err := s.List(ctx, families...)

	return slices.DeleteFunc(all, func(e model.Entry) bool { return nameOrKey != "" && e.Name != nameOrKey && e.Key != nameOrKey }), err
}

// key returns the key of a name that only one assignment has.
func (s *store) key(ctx context.Context, nameOrKey string) (string, error) {
	if isKey(nameOrKey) {
		return nameOrKey, nil
	}
	all, err := s.list(ctx, nil, nameOrKey)
	if err != nil {
		return "", err
	}

	return uniqueKey(all, nameOrKey)
}

// storedKey returns the key of a name that only one assignment has, or without any,
// only one removed assignment.
func (s *store) storedKey(ctx context.Context, nameOrKey string) (string, error) {
	key, err := s.key(ctx, nameOrKey)
	if !errors.Is(err, model.ErrNotFound) {
		return key, err
	}
	removed, err := s.Removed(ctx)
	if err != nil {
		return "", err
	}
	key, err = uniqueKey(slices.DeleteFunc(removed, func(e model.Entry) bool { return e.Name != nameOrKey }), nameOrKey)
	if errors.Is(err, model.ErrNotFound) {
		err = s.notAssigned(ctx, nameOrKey)
	}

	return key, err
}

// history returns the stored revisions of an assignment, found as storedKey does, the
// newest last.
func (s *store) history(ctx context.Context, nameOrKey string) (key string, all []model.Entry, err error) {
	if key, err = s.storedKey(ctx, nameOrKey); err != nil {
		return "", nil, err
	}
	all, err = s.History(ctx, key)
	if errors.Is(err, model.ErrNotFound) {
		err = s.notAssigned(ctx, key)
	}

	return key, all, err
}

// notAssigned returns the error of a name or key without an assignment, with the nearest
// one that has one.
func (s *store) notAssigned(ctx context.Context, nameOrKey string) error {
	all, err := s.List(ctx)
	if err != nil {
		return err
	}
	what, known := nameOrKey, make([]string, len(all))
	if !isKey(nameOrKey) {
		what = "manifest " + nameOrKey
	}
	for i, e := range all {
		if known[i] = e.Name; isKey(nameOrKey) {
			known[i] = e.Key
		}
	}
	if near := document.Nearest(nameOrKey, known); near != "" {
		return fmt.Errorf("%w, did you mean %s?", notAssigned(what), near)
	}

	return notAssigned(what)
}

func uniqueKey(all []model.Entry, name string) (string, error) {
	switch len(all) {
	case 0:
		return "", notAssigned("manifest " + name)
	case 1:
		return all[0].Key, nil
	}
	keys := make([]string, len(all))
	for i, e := range all {
		keys[i] = e.Key
	}

	return "", fmt.Errorf("%s is ambiguous; give a full key: %s", name, strings.Join(keys, ", "))
}

// notAssigned is what has no assignment, a model.ErrNotFound.
type notAssigned string

// Error names it, with the remedy.
func (n notAssigned) Error() string { return string(n) + " is not assigned (see muster fleet ls)" }

// Unwrap returns model.ErrNotFound.
func (n notAssigned) Unwrap() error { return model.ErrNotFound }
