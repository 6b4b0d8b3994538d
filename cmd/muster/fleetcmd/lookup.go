package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// IsKey reports whether a text is a key such as node.web01.motd, rather than a name such as motd.
func IsKey(text string) bool { return strings.Contains(text, ".") }

// CheckNameOrKey validates the name of a manifest, or a key.
func CheckNameOrKey(text string) error {
	err := model.CheckName(text)
	if IsKey(text) {
		_, _, err = fleet.ParseKey(text)
	}
	if err != nil {
		return cli.Usagef("%w", err)
	}

	return nil
}

// Named returns the assignments with a name or key; an empty nameOrKey returns all.
func (s *Store) Named(ctx context.Context, families []string, nameOrKey string) ([]model.Entry, error) {
	all, err := s.List(ctx, families...)

	return slices.DeleteFunc(all, func(e model.Entry) bool { return nameOrKey != "" && e.Name != nameOrKey && e.Key != nameOrKey }), err
}

// AssignedKeysOf returns the keys of the current assignments with a name.
func (s *Store) AssignedKeysOf(ctx context.Context, name string) ([]string, error) {
	all, err := s.Named(ctx, nil, name)

	return keysOf(all), err
}

// KeyOf returns the key of a name. It returns an error if several assignments have the name.
func (s *Store) KeyOf(ctx context.Context, nameOrKey string) (string, error) {
	if IsKey(nameOrKey) {
		return nameOrKey, nil
	}
	all, err := s.Named(ctx, nil, nameOrKey)
	if err != nil {
		return "", err
	}

	return uniqueKey(all, nameOrKey)
}

// storedKey is KeyOf, but falls back to removed assignments.
func (s *Store) storedKey(ctx context.Context, nameOrKey string) (string, error) {
	key, err := s.KeyOf(ctx, nameOrKey)
	if !errors.Is(err, model.ErrNotFound) {
		return key, err
	}
	removed, err := s.Removed(ctx)
	if err != nil {
		return "", err
	}
	switch removed = slices.DeleteFunc(removed, func(e model.Entry) bool { return e.Name != nameOrKey }); len(removed) {
	case 0:
		return "", s.NotAssigned(ctx, nameOrKey)
	case 1:
		return removed[0].Key, nil
	default:
		return "", &ambiguousError{name: nameOrKey, keys: keysOf(removed), areRemoved: true}
	}
}

// KeysOf returns the sorted keys, current and removed, of a name or key.
func (s *Store) KeysOf(ctx context.Context, nameOrKey string) ([]string, error) {
	all, err := s.Named(ctx, nil, nameOrKey)
	if err != nil {
		return nil, err
	}
	removed, err := s.Removed(ctx)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, e := range append(all, removed...) {
		if e.Key == nameOrKey || e.Name == nameOrKey {
			keys = append(keys, e.Key)
		}
	}
	slices.Sort(keys)

	return slices.Compact(keys), nil
}

// OpenHistory connects to the fleet and reads the stored revisions of an assignment, by key or unique name.
// It is for commands with the flags of AddOwner.
func OpenHistory(ctx context.Context, env *cli.Env, nameOrKey string) (s *Store, key string, all []model.Entry, err error) {
	if err := CheckNameOrKey(nameOrKey); err != nil {
		return nil, "", nil, err
	}
	if s, err = Open(ctx, env); err != nil {
		return nil, "", nil, err
	}
	key, all, err = s.HistoryOf(ctx, nameOrKey)

	return s, key, all, withFlags(err)
}

// HistoryOf returns the stored revisions of a current or removed assignment, newest last.
func (s *Store) HistoryOf(ctx context.Context, nameOrKey string) (key string, all []model.Entry, err error) {
	if key, err = s.storedKey(ctx, nameOrKey); err != nil {
		return "", nil, err
	}
	all, err = s.History(ctx, key)
	if errors.Is(err, model.ErrNotFound) {
		err = s.NotAssigned(ctx, key)
	}

	return key, all, err
}

// Content reads the content of a revision, see assign.ReadContent.
func (s *Store) Content(ctx context.Context, e model.Entry) (assign.Content, error) {
	return assign.ReadContent(ctx, e, kvstore.NewContent(s.KV).GetBundle)
}

// WriteFile writes one file of a revision to w, see assign.WriteContent.
func (s *Store) WriteFile(ctx context.Context, e model.Entry, name string, w io.Writer) error {
	return assign.WriteContent(ctx, e, kvstore.NewContent(s.KV).GetBundle, name, w)
}

// Digests returns the digests of the stored revisions of a key, by revision.
func (s *Store) Digests(ctx context.Context, key string) (map[uint64]string, error) {
	all, err := s.History(ctx, key)
	if err != nil && !errors.Is(err, model.ErrNotFound) {
		return nil, err
	}
	out := map[uint64]string{}
	for _, e := range all {
		out[e.Revision] = e.Digest
	}

	return out, nil
}

// NotAssigned returns an error for a name or key without an assignment, with a suggestion.
func (s *Store) NotAssigned(ctx context.Context, nameOrKey string) error {
	all, err := s.List(ctx)
	if err != nil {
		return err
	}
	what, known := nameOrKey, make([]string, len(all))
	if !IsKey(nameOrKey) {
		what = "manifest " + nameOrKey
	}
	for i, e := range all {
		if known[i] = e.Name; IsKey(nameOrKey) {
			known[i] = e.Key
		}
	}
	if near := document.Nearest(nameOrKey, known); near != "" {
		return fmt.Errorf("%w, did you mean %s?", NotAssigned(what), near)
	}

	return NotAssigned(what)
}

func uniqueKey(all []model.Entry, name string) (string, error) {
	switch len(all) {
	case 0:
		return "", NotAssigned("manifest " + name)
	case 1:
		return all[0].Key, nil
	}

	return "", &ambiguousError{name: name, keys: keysOf(all)}
}

// NotAssigned is an error for a name or key without an assignment. It wraps model.ErrNotFound.
type NotAssigned string

// Error returns the message with the remedy.
func (n NotAssigned) Error() string { return string(n) + " is not assigned (see muster fleet ls)" }

// Unwrap returns model.ErrNotFound.
func (n NotAssigned) Unwrap() error { return model.ErrNotFound }
