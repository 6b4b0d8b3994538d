package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"
)

type drawn struct {
	html   string
	status int
	final  bool
}

type fragment struct {
	drawn
	// id is a hash of the content, at the time at which drawing started.
	id string
	at time.Time
}

// fragments caches drawn contents by request, so many browsers share one.
type fragments struct {
	now func() time.Time

	mu    sync.Mutex
	slots map[string]*slot
}

// slot is the cache entry of one fragment. Its lock is held while the fragment is drawn.
type slot struct {
	turn chan struct{}
	// used is the time of the last request, guarded by the lock of all slots.
	used time.Time
	fragment
}

// maxSlots is the maximum number of cached fragments, keep the time after which unused ones are dropped.
const (
	maxSlots = 64
	keep     = 10 * time.Second
)

func newFragments(now func() time.Time) *fragments {
	return &fragments{now: now, slots: map[string]*slot{}}
}

// get returns a fragment that was drawn at a time or later, and draws a missing one. It returns the error of the
// context.
func (f *fragments) get(ctx context.Context, key string, after time.Time, draw func(now time.Time) drawn) (fragment, error) {
	s := f.slot(key)
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return fragment{}, context.Cause(ctx)
	}
	defer func() { <-s.turn }()
	if s.at.IsZero() || s.at.Before(after) {
		now := f.now()
		d := draw(now)
		sum := sha256.Sum256([]byte(d.html))
		s.fragment = fragment{d, hex.EncodeToString(sum[:8]), now}
	}

	return s.fragment, nil
}

func (f *fragments) slot(key string) *slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	s := f.slots[key]
	if s == nil {
		for other, old := range f.slots {
			if len(f.slots) >= maxSlots || now.Sub(old.used) > keep {
				delete(f.slots, other)
			}
		}
		s = &slot{turn: make(chan struct{}, 1)}
		f.slots[key] = s
	}
	s.used = now

	return s
}

// forget drops the content of a path after a change, so that the next request draws it again.
func (f *fragments) forget(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key := range f.slots {
		if strings.HasPrefix(key, path+"?") {
			delete(f.slots, key)
		}
	}
}

// keyOf returns the cache key of a request. The order of parameters and the state of the browser do not matter.
// Operators have their own keys, because their pages have buttons.
func keyOf(r *http.Request, acts bool) string {
	q := r.URL.Query()
	q.Del(have)
	key := r.URL.EscapedPath() + "?" + q.Encode()
	if acts {
		key += " acts"
	}

	return key
}

// have is the parameter with the content id that a browser has when its stream starts.
const have = "have"

func streamURL(r *http.Request, f fragment) string {
	q := r.URL.Query()
	q.Set(have, f.id)

	return r.URL.EscapedPath() + "?" + q.Encode()
}
