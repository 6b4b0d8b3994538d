package kvstore

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// registrationWatch follows registrations. The server says nothing when one
// expires, so that is found out here.
type registrationWatch struct {
	names    Names
	standing map[string]Registered
	yield    func(Registered, error) bool
}

// arrival is what comes out of the stream.
type arrival struct {
	message
	left uint64
	err  error
}

func (w *registrationWatch) run(ctx context.Context, s *Store, subject string) {
	stream := s.names.Registrations()
	consumer, err := s.js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{subject}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, InactiveThreshold: time.Minute,
	})
	if err != nil {
		w.yield(Registered{}, s.registrationError("watch registrations", err))
		return
	}
	defer func() { s.forget(ctx, stream, consumer.CachedInfo().Name) }()
	pending := consumer.CachedInfo().NumPending
	messages, err := consumer.Messages()
	if err != nil {
		w.yield(Registered{}, s.registrationError("watch registrations", err))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	arrivals := make(chan arrival)
	ended := make(chan struct{})
	defer func() {
		cancel()
		messages.Stop()
		<-ended
	}()
	go func() {
		defer close(ended)
		for {
			m, left, err := next(ctx, messages)
			select {
			case arrivals <- arrival{m, left, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	w.follow(ctx, arrivals, pending)
}

// follow gives what comes, and what expires.
func (w *registrationWatch) follow(ctx context.Context, arrivals <-chan arrival, pending uint64) {
	if pending == 0 && !w.yield(Registered{}, nil) {
		return
	}
	for {
		timer := time.NewTimer(time.Until(w.earliest()))
		more := false
		select {
		case a := <-arrivals:
			if more = w.take(a); more && pending > 0 {
				if pending = a.left; pending == 0 {
					more = w.yield(Registered{}, nil)
				}
			}
		case <-timer.C:
			more = w.expire()
		case <-ctx.Done():
			w.yield(Registered{}, context.Cause(ctx))
		}
		timer.Stop()
		if !more {
			return
		}
	}
}

// earliest gives when the next registration ends.
func (w *registrationWatch) earliest() time.Time {
	at := time.Now().Add(time.Hour)
	for _, r := range w.standing {
		if r.Expires.Before(at) {
			at = r.Expires
		}
	}

	return at
}

// take gives what came; false means that nothing more is wanted.
func (w *registrationWatch) take(a arrival) bool {
	if a.err != nil {
		w.yield(Registered{}, a.err)
		return false
	}
	known, had := w.standing[a.subject]
	if a.deleted() {
		delete(w.standing, a.subject)
		known.Gone = true
		return !had || w.yield(known, nil)
	}
	r, err := w.names.decodeRegistration(a.message)
	if err != nil {
		return w.yield(Registered{}, err) && errors.Is(err, ErrInvalidRegistration)
	}
	if !time.Now().Before(r.Expires) {
		return true
	}
	w.standing[a.subject] = r

	return w.yield(r, nil)
}

// expire gives what has ended by itself.
func (w *registrationWatch) expire() bool {
	now := time.Now()
	for subject, r := range w.standing {
		if now.Before(r.Expires) {
			continue
		}
		delete(w.standing, subject)
		r.Gone = true
		if !w.yield(r, nil) {
			return false
		}
	}

	return true
}
