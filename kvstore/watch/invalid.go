package watch

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// familyOf returns the family of the node that a key of another form is below.
func (l *loop) familyOf(key string) string {
	for _, family := range l.families {
		if strings.HasPrefix(key, family+".") {
			return family
		}
	}

	return ""
}

// readInvalid looks whether a key that is no manifest's is there.
func (l *loop) readInvalid(ctx context.Context, key string) error {
	if !kvstore.IsInvalidKey(key) {
		return nil
	}
	m, err := l.store.Last(ctx, kvstore.KVStream(l.bucket), kvstore.KVSubject(l.bucket, key))
	if err != nil && !errors.Is(err, model.ErrNotFound) {
		return err
	}
	l.noteInvalid(key, err == nil && !m.Deleted())

	return nil
}

// invalid returns the keys below a family that are known as no manifest's.
func (l *loop) invalid(family string) map[string]bool {
	_, state := l.Entries()
	keys := map[string]bool{}
	for _, key := range state.Invalid {
		if l.familyOf(key) == family {
			keys[key] = true
		}
	}

	return keys
}

// noteInvalid updates Sync by a key that is no manifest's, or that it is gone.
func (l *loop) noteInvalid(key string, there bool) {
	if !kvstore.IsInvalidKey(key) {
		return
	}
	l.update(func(s *model.Sync) {
		at, known := slices.BinarySearch(s.Invalid, key)
		switch {
		case there && !known:
			s.Invalid = slices.Insert(slices.Clone(s.Invalid), at, key)
		case !there && known:
			s.Invalid = slices.Delete(slices.Clone(s.Invalid), at, at+1)
		}
	})
}
