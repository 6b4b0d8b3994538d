package access

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Turns limit how many operations run at the same time, in total and per user. Others wait. Create them with NewTurns. They
// may be used by several goroutines.
type Turns struct {
	all       *semaphore.Weighted
	most, own int64

	mu sync.Mutex
	// shares are the shares of users who run an operation or wait.
	shares map[string]*share
}

// share is the share of a user; users counts the operations that run or wait, guarded by Turns.mu.
type share struct {
	*semaphore.Weighted
	users int
}

// NewTurns returns a limit for all users together and for each user.
func NewTurns(all, own int) *Turns {
	return &Turns{all: semaphore.NewWeighted(int64(all)), most: int64(all), own: int64(own), shares: map[string]*share{}}
}

// Enter waits until a user (User.Share) may run an operation, and returns false if ctx ends before. Call leave after the
// operation. An empty user has no limit of its own.
func (p *Turns) Enter(ctx context.Context, user string) (leave func(), ok bool) {
	of := p.share(user)
	if of.Acquire(ctx, 1) != nil {
		p.done(user, of)
		return nil, false
	}
	release := func() {
		of.Release(1)
		p.done(user, of)
	}
	if p.all.Acquire(ctx, 1) != nil {
		release()
		return nil, false
	}

	return func() {
		p.all.Release(1)
		release()
	}, true
}

// share returns the share of a user.
func (p *Turns) share(user string) *share {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shares[user]
	if s == nil {
		size := p.own
		if user == "" {
			size = p.most
		}
		s = &share{Weighted: semaphore.NewWeighted(size)}
		p.shares[user] = s
	}
	s.users++

	return s
}

// done forgets a share without operations.
func (p *Turns) done(user string, s *share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(p.shares, user)
	}
}
