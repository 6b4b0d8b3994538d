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

// drawn is content in HTML.
type drawn struct {
	html   string
	status int
	final  bool
}

// fragment is the content of a page as it was at a time.
type fragment struct {
	drawn
	// id is a hash of it, at when it was begun to be drawn.
	id string
	at time.Time
}

// fragments are those that were drawn last, by what was asked for: what many browsers look at is
// drawn once.
type fragments struct {
	now func() time.Time

	mu    sync.Mutex
	slots map[string]*slot
}

// slot is the place of one fragment. Who draws it holds its turn.
type slot struct {
	turn chan struct{}
	// used is when somebody asked for it last; the lock of all slots guards it.
	used time.Time
	fragment
}

// maxSlots is how many fragments are kept, keep how long one is that nobody asks for.
const (
	maxSlots = 64
	keep     = 10 * time.Second
)

func newFragments(now func() time.Time) *fragments {
	return &fragments{now: now, slots: map[string]*slot{}}
}

// get returns a fragment that was begun to be drawn at a time or later, and draws it where there is
// none. The error is that of the context.
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

// slot returns the slot of a key, and forgets those that are not used any more.
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

// forget has the content of a path drawn again for whoever asks next: somebody changed it, and is led there.
func (f *fragments) forget(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key := range f.slots {
		if strings.HasPrefix(key, path+"?") {
			delete(f.slots, key)
		}
	}
}

// keyOf returns what distinguishes the content of a request from others: the order of its
// parameters does not, and neither does what the browser has. Who may act has buttons.
func keyOf(r *http.Request, acts bool) string {
	q := r.URL.Query()
	q.Del(have)
	key := r.URL.EscapedPath() + "?" + q.Encode()
	if acts {
		key += " acts"
	}

	return key
}

// have is the parameter with the id of the content that a browser has when its stream begins.
const have = "have"

// streamURL returns the URL of the updates of a page that has a fragment.
func streamURL(r *http.Request, f fragment) string {
	q := r.URL.Query()
	q.Set(have, f.id)

	return r.URL.EscapedPath() + "?" + q.Encode()
}
