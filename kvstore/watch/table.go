package watch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// table holds the active entries without values, and the state of the synchronization. Its methods are
// safe for concurrent use.
type table struct {
	// isKey reports whether nodes read a key.
	isKey func(key string) bool

	mu      sync.Mutex
	entries map[string]held
	sync    model.Sync
	// changed holds the keys that changed since the last takeChanged.
	changed []string
	// fresh holds messages by key until Read returns their values, at most maxFresh bytes together.
	// Read asks the server for all other values.
	fresh      map[string]kvstore.Message
	freshBytes int
}

// maxFresh limits the values in fresh, in bytes.
const maxFresh = 1 << 20

// held is an active entry, with the creation time of its stream.
type held struct {
	model.Entry
	stream time.Time
}

// recall starts with the remembered entries of the families. An entry that the bucket lacked then
// keeps no stream, so it is not removed now.
func (t *table) recall(m model.Memory, families []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries, t.sync, t.changed = map[string]held{}, model.Sync{Stream: m.Stream}, nil
	t.fresh, t.freshBytes = nil, 0
	for key, e := range m.Entries {
		e.Family, e.Name, _ = model.SplitKey(key)
		switch {
		case !slices.Contains(families, e.Family) || key != e.Key:
		case slices.Contains(m.Kept, key):
			t.entries[key] = held{Entry: e}
			t.sync.Kept = append(t.sync.Kept, key)
		default:
			t.entries[key] = held{Entry: e, stream: m.Stream}
		}
	}
	slices.Sort(t.sync.Kept)
}

// all returns a copy of the entries, and Sync.
func (t *table) all() (map[string]model.Entry, model.Sync) {
	t.mu.Lock()
	defer t.mu.Unlock()
	entries := make(map[string]model.Entry, len(t.entries))
	for key, h := range t.entries {
		entries[key] = h.Entry
	}

	return entries, t.sync
}

func (t *table) of(family string) map[string]held {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := maps.Clone(t.entries)
	maps.DeleteFunc(known, func(_ string, h held) bool { return h.Family != family })

	return known
}

func (t *table) get(key string) (held, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, ok := t.entries[key]

	return h, ok
}

// put activates a message, which may be the removal of its key.
func (t *table) put(key string, m kvstore.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, known := t.entries[key]
	t.sync.Kept = without(t.sync.Kept, key)
	switch {
	case m.Deleted() && !m.Forged:
		t.remove(key) // even if the key is unknown, because the removal may be signed
		return
	case !known || before.Revision != m.Sequence || !before.Time.Equal(m.Time):
		t.changed = append(t.changed, key)
		t.holdFresh(key, m)
	}
	e := kvstore.NewEntry(key, m)
	e.Value = nil // takeFresh returns it
	t.entries[key] = held{Entry: e, stream: t.sync.Stream}
}

// holdFresh holds the value of a message until takeFresh.
func (t *table) holdFresh(key string, m kvstore.Message) {
	t.dropFresh(key)
	if m.Forged || t.freshBytes+len(m.Data) > maxFresh {
		return
	}
	if t.fresh == nil {
		t.fresh = map[string]kvstore.Message{}
	}
	t.fresh[key] = m
	t.freshBytes += len(m.Data)
}

func (t *table) dropFresh(key string) {
	t.freshBytes -= len(t.fresh[key].Data)
	delete(t.fresh, key)
}

// takeFresh returns the held message of a key if it has at least the given revision.
func (t *table) takeFresh(key string, revision uint64) (m kvstore.Message, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, found = t.fresh[key]
	t.dropFresh(key)

	return m, found && m.Sequence >= revision
}

func (t *table) drop(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(key)
}

func (t *table) remove(key string) {
	delete(t.entries, key)
	t.dropFresh(key)
	t.changed = append(t.changed, key)
}

// keep keeps a key active and reports whether this is new. The entry loses its stream until the key is
// read again, so its absence from the bucket does not remove it.
func (t *table) keep(key string) (isNew bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries[key] = held{Entry: t.entries[key].Entry}
	before := len(t.sync.Kept)
	t.sync.Kept = with(t.sync.Kept, key)

	return len(t.sync.Kept) > before
}

// noteInvalid records whether the bucket has an invalid key.
func (t *table) noteInvalid(key string, there bool) {
	if t.isKey(key) {
		return
	}
	t.update(func(s *model.Sync) {
		if there {
			s.Invalid = with(s.Invalid, key)
		} else {
			s.Invalid = without(s.Invalid, key)
		}
	})
}

// noteUnreadable records whether the newest value of a key has unreadable headers. The active entry
// does not change.
func (t *table) noteUnreadable(key string, is bool) {
	t.update(func(s *model.Sync) {
		if is {
			t.dropFresh(key)
			s.Unreadable = with(s.Unreadable, key)
		} else {
			s.Unreadable = without(s.Unreadable, key)
		}
	})
}

// unusable returns the invalid and the unreadable keys of a family.
func (t *table) unusable(family string) map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys := map[string]bool{}
	for _, key := range slices.Concat(t.sync.Invalid, t.sync.Unreadable) {
		if strings.HasPrefix(key, family+".") {
			keys[key] = true
		}
	}

	return keys
}

func with(keys []string, key string) []string {
	at, found := slices.BinarySearch(keys, key)
	if found {
		return keys
	}

	return slices.Insert(slices.Clone(keys), at, key)
}

func without(keys []string, key string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k == key })
}

func (t *table) update(change func(*model.Sync)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.sync)
}

// takeChanged returns the sorted keys that changed since the last call, and a text of the problems in
// Sync.
func (t *table) takeChanged() (keys []string, problems string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys, t.changed = t.changed, nil
	slices.Sort(keys)

	return slices.Compact(keys), fmt.Sprint(t.sync.Err, t.sync.Kept, t.sync.Invalid, t.sync.Unreadable, t.sync.Denied)
}
