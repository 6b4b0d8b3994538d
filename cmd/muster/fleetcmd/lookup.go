package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// CheckNameOrKey validates the name of a manifest, or a key.
func CheckNameOrKey(text string) error {
	err := model.CheckName(text)
	if assign.IsKey(text) {
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

// KeyOf returns the key of a name. It returns an error if several assignments have the name.
func (s *Store) KeyOf(ctx context.Context, nameOrKey string) (string, error) {
	if assign.IsKey(nameOrKey) {
		return nameOrKey, nil
	}
	all, err := s.Named(ctx, nil, nameOrKey)
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		return "", assign.NotAssigned(nameOrKey, nil)
	case len(all) == 1:
		return all[0].Key, nil
	default:
		return "", &ambiguousError{name: nameOrKey, keys: keysOf(all)}
	}
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

// openHistory connects to the fleet and reads the stored revisions of an assignment, by key, unique name, or name and
// flags of AddOwner.
func (t *TargetFlags) openHistory(ctx context.Context, env *cli.Env, nameOrKey string) (s *Store, key string, all []model.Entry, err error) {
	if nameOrKey, err = t.KeyOr(nameOrKey); err == nil {
		err = CheckNameOrKey(nameOrKey)
	}
	if err != nil {
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

// NotAssigned returns an error for a name or key without an assignment, with a suggestion.
func (s *Store) NotAssigned(ctx context.Context, nameOrKey string) error {
	all, err := s.List(ctx)
	if err != nil {
		return err
	}

	return assign.NotAssigned(nameOrKey, all)
}

// maxExamples is the maximum number of keys with written-out flags in a message.
const maxExamples = 3

// ambiguousError reports a name that several assignments have, or had.
type ambiguousError struct {
	name string
	keys []string
	// areRemoved: all assignments of that name were removed.
	areRemoved bool
	// hasFlags: the command has the flags of Owner.
	hasFlags bool
}

// Error lists the keys, and how to name one of them.
func (a *ambiguousError) Error() string {
	what, listed := "is ambiguous", a.name
	if a.areRemoved {
		what, listed = "is not assigned, and several of that name were removed", a.name+" --removed"
	}
	flags := ""
	if a.hasFlags {
		flags = FlagsOf(a.keys) + ", or "
	}

	return fmt.Sprintf("%s %s; give %sa full key: %s", a.name, what, flags, SomeKeys(listed, a.keys))
}

// withFlags adds the flags that resolve an ambiguous name to its error.
func withFlags(err error) error {
	var ambiguous *ambiguousError
	if errors.As(err, &ambiguous) {
		ambiguous.hasFlags = true
	}

	return err
}

// FlagsOf returns the flags that distinguish keys of one name, for at most the first maxExamples keys.
func FlagsOf(keys []string) string {
	var out []string
	for _, key := range keys {
		t, _, err := fleet.ParseKey(key)
		switch {
		case err != nil:
		case t.Node != "":
			out = append(out, "--node "+t.Node)
		case t.Group == model.GroupAll:
			out = append(out, "--all")
		default:
			out = append(out, "--group "+t.Group)
		}
	}
	if len(out) > maxExamples {
		out = append(out[:maxExamples], "…")
	}

	return strings.Join(out, ", ")
}

// SomeKeys lists the first keys of a name; listed are the arguments of muster fleet ls that list them all.
func SomeKeys(listed string, keys []string) string {
	return print.Some(keys, "see muster fleet ls "+listed)
}

// keysOf returns the keys of the assignments.
func keysOf(all []model.Entry) []string {
	keys := make([]string, len(all))
	for i, e := range all {
		keys[i] = e.Key
	}

	return keys
}
