package access

import (
	"errors"
	"fmt"
	"sync"
)

// ErrNoPlace is that no place is left.
var ErrNoPlace = errors.New("no place is left")

// Places are what so many can have at once, and of these each user so many. Make it with NewPlaces. It may be used
// by several goroutines.
type Places struct {
	what      string
	most, own int

	mu    sync.Mutex
	taken int
	of    map[string]int
}

// NewPlaces returns places, of which a user has at most own; what they are is a word of the plural.
func NewPlaces(what string, most, own int) *Places {
	return &Places{what: what, most: most, own: own, of: map[string]int{}}
}

// Take takes a place for a user until leave is called, once. Where nobody signs in, nobody is told apart, and
// there is no share. The error wraps ErrNoPlace and says what to do.
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
