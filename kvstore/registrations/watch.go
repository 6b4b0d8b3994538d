package registrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
)

// askAgain is after how long a server is asked again that did not answer.
const askAgain = time.Second

// registrationWatch follows registrations. The server says nothing when one
// expires, so that is found out here.
type registrationWatch struct {
	store    *kvstore.Store
	subject  string
	standing map[string]Registered
	yield    func(Registered, error) bool
	// away says that the server did not answer, back when it did so again.
	away bool
	back time.Time
}

// arrival is what comes out of the stream.
type arrival struct {
	kvstore.Message
	left uint64
	err  error
}

func (w *registrationWatch) run(ctx context.Context) {
	s := w.store
	stream := s.Names().Registrations()
	consumer, err := s.JetStream().OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{w.subject}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, InactiveThreshold: time.Minute,
	})
	if err != nil {
		w.yield(Registered{}, Stream{s}.registrationError("watch registrations", err))
		return
	}
	defer func() { s.Forget(ctx, stream, consumer.CachedInfo().Name) }()
	pending := consumer.CachedInfo().NumPending
	messages, err := consumer.Messages()
	if err != nil {
		w.yield(Registered{}, Stream{s}.registrationError("watch registrations", err))
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
			m, left, err := kvstore.Next(ctx, messages)
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
			more = w.expire(ctx)
		case <-ctx.Done():
			w.yield(Registered{}, context.Cause(ctx))
		}
		timer.Stop()
		if !more {
			return
		}
	}
}

// earliest gives when the next registration ends, or the server is asked again.
func (w *registrationWatch) earliest() time.Time {
	if w.away {
		return time.Now().Add(askAgain)
	}
	at := time.Now().Add(time.Hour)
	for _, r := range w.standing {
		if end := w.end(r); end.Before(at) {
			at = end
		}
	}

	return at
}

// end gives when a registration ends that is not renewed. After an absence of
// the server it has its whole TTL once more, because nobody could renew it.
func (w *registrationWatch) end(r Registered) time.Time {
	if again := w.back.Add(r.TTL.Std()); again.After(r.Expires) {
		return again
	}

	return r.Expires
}

// take gives what came; false means that nothing more is wanted.
func (w *registrationWatch) take(a arrival) bool {
	if a.err != nil {
		w.yield(Registered{}, a.err)
		return false
	}
	known, had := w.standing[a.Subject]
	if a.Deleted() {
		delete(w.standing, a.Subject)
		known.Gone = true
		return !had || w.yield(known, nil)
	}
	r, err := decodeRegistration(w.store.Names(), a.Message)
	if err != nil {
		return w.yield(Registered{}, err) && errors.Is(err, ErrInvalidRegistration)
	}
	if !time.Now().Before(r.Expires) {
		return true
	}
	w.standing[a.Subject] = r

	return w.yield(r, nil)
}

// expire gives what has ended by itself. While the server does not say that it
// has, nothing ends.
func (w *registrationWatch) expire(ctx context.Context) bool {
	known, err := w.read(ctx)
	switch {
	case ctx.Err() != nil:
		return true
	case err != nil:
		told := w.away
		w.away = true
		return told || w.yield(Registered{}, fmt.Errorf("%w, what held stays until NATS answers: %w", ErrNotCurrent, err))
	case w.away:
		w.away, w.back = false, time.Now()
	}
	now := time.Now()
	for subject, r := range w.standing {
		if renewed, ok := known[subject]; ok && renewed.Expires.After(r.Expires) {
			r = renewed
			w.standing[subject] = r
		}
		if now.Before(w.end(r)) {
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

// read gives what the server holds now.
func (w *registrationWatch) read(ctx context.Context) (map[string]Registered, error) {
	if err := w.store.Away(); err != nil {
		return nil, err
	}
	out := map[string]Registered{}
	for m, err := range w.store.DirectAll(ctx, w.store.Names().Registrations(), w.subject, pageSize) {
		if err != nil {
			return nil, err
		}
		if r, err := decodeRegistration(w.store.Names(), m); err == nil && !m.Deleted() {
			out[m.Subject] = r
		}
	}

	return out, nil
}
