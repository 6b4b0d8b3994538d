package access

import (
	"errors"
	"fmt"
	"sync"
)

// ErrNoPlace means that all places are taken.
var ErrNoPlace = errors.New("no place is left")

// Places limit how many things are open at the same time, in total and per user. Create them with NewPlaces. They may
// be used by several goroutines.
type Places struct {
	what      string
	most, own int

	mu    sync.Mutex
	taken int
	of    map[string]int
}

// NewPlaces returns most places, and at most own per user. Messages use the plural noun what.
func NewPlaces(what string, most, own int) *Places {
	return &Places{what: what, most: most, own: own, of: map[string]int{}}
}

// Take takes a place for a user until leave is called, once. Without sign-in there is no limit per user. The error
// wraps ErrNoPlace and contains the remedy.
func (p *Places) Take(u User) (leave func(), err error) {
	share := u.Share()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case u.Name != "" && p.of[share] >= p.own:
		return nil, fmt.Errorf("%w: %d %s of %s are open, which is the most for one user: close one", ErrNoPlace, p.own, p.what, u.Name)
	case p.taken >= p.most:
		return nil, fmt.Errorf("%w: %d %s are open, which is the most: try again", ErrNoPlace, p.most, p.what)
	}
	p.taken++
	p.of[share]++

	return func() { p.leave(share) }, nil
}

func (p *Places) leave(share string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[share]--; p.of[share] == 0 {
		delete(p.of, share)
	}
}
