// Package recent reads once for all who ask within a while, so that what costs much to read costs it once.
package recent

import (
	"context"
	"errors"
	"sync"
	"time"
)

// patience is how long one reading may take.
const patience = 10 * time.Second

// ErrNotRead is what others get who waited for a reading that panicked.
var ErrNotRead = errors.New("reading ended without a value")

// Values are what was read last, by what was asked for. Make them with New. They may be used by several
// goroutines, which share what they get.
type Values[T any] struct {
	keep time.Duration
	most int

	mu     sync.Mutex
	values map[string]*value[T]
}

// value is what was read, once done is closed.
type value[T any] struct {
	done chan struct{}
	was  T
	err  error
	// at is when reading began.
	at time.Time
}

// New returns values of which each is kept for a while after it was read, and of which there are so many at most.
func New[T any](keep time.Duration, most int) *Values[T] {
	return &Values[T]{keep: keep, most: most, values: map[string]*value[T]{}}
}

// Get returns the value of a key, which is read where nobody read it within the while. Whoever asks while somebody
// reads it gets the same. The error is that of reading, which is not kept, or that of ctx, which ends only waiting for
// others: who reads goes on for them, for ten seconds at most. Where read panics, so does Get; others get ErrNotRead.
func (v *Values[T]) Get(ctx context.Context, key string, read func(context.Context) (T, error)) (none T, err error) {
	is, first := v.value(key)
	if first {
		v.read(ctx, key, is, read)
	}
	select {
	case <-is.done:
		return is.was, is.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// value returns that of a key, and whether it is new and must be read. The oldest makes room for it.
func (v *Values[T]) value(key string) (is *value[T], first bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if is := v.values[key]; is != nil {
		return is, false
	}
	for len(v.values) >= v.most {
		oldest := ""
		for k, is := range v.values {
			if o := v.values[oldest]; o == nil || is.at.Before(o.at) {
				oldest = k
			}
		}
		delete(v.values, oldest)
	}
	is = &value[T]{done: make(chan struct{}), at: time.Now()}
	v.values[key] = is

	return is, true
}

// read reads the value of a key. Whoever asked first and goes away does not end what others wait for.
func (v *Values[T]) read(ctx context.Context, key string, is *value[T], read func(context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	is.err = ErrNotRead
	defer func() {
		if is.err != nil {
			v.forget(key, is)
		}
		close(is.done)
	}()
	if is.was, is.err = read(ctx); is.err == nil {
		time.AfterFunc(v.keep, func() { v.forget(key, is) })
	}
}

// forget forgets a value, where it is still that of its key.
func (v *Values[T]) forget(key string, is *value[T]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.values[key] == is {
		delete(v.values, key)
	}
}
