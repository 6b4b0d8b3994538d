package access

import (
	"context"
	"sync"
)

// Turns are places to do something, for few at once, of which each user has only some; the others wait. Make them with NewTurns. They may be used by
// several goroutines.
type Turns struct {
	all chan struct{}
	own int

	mu sync.Mutex
	// shares are those of the users who have a place or wait for one.
	shares map[string]*share
}

// share is that of a user; users counts those that have it in use, and the lock of Turns guards it.
type share struct {
	places chan struct{}
	users  int
}

// NewTurns returns so many places, of which one user may have some.
func NewTurns(all, own int) *Turns {
	return &Turns{all: make(chan struct{}, all), own: own, shares: map[string]*share{}}
}

// Enter waits for a place for a user (User.Share) until ctx ends, and reports whether there is one; leave gives it
// back. What is for nobody, as where nobody signs in, may have all places.
func (p *Turns) Enter(ctx context.Context, user string) (leave func(), ok bool) {
	of := p.share(user)
	if !enter(ctx, of.places) {
		p.done(user, of)
		return nil, false
	}
	if !enter(ctx, p.all) {
		<-of.places
		p.done(user, of)
		return nil, false
	}

	return func() {
		<-p.all
		<-of.places
		p.done(user, of)
	}, true
}

func enter(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// share returns that of a user.
func (p *Turns) share(user string) *share {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shares[user]
	if s == nil {
		size := p.own
		if user == "" {
			size = cap(p.all)
		}
		s = &share{places: make(chan struct{}, size)}
		p.shares[user] = s
	}
	s.users++

	return s
}

// done forgets a share that nobody uses any more.
func (p *Turns) done(user string, s *share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(p.shares, user)
	}
}
