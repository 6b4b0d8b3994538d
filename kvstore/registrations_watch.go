package kvstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// registrationRetry is the pause before the server is asked again.
const registrationRetry = time.Second

// WatchRegistrations yields the current registrations, then an empty Registered, and then each new,
// renewed or ended one until ctx ends. Gone marks an ended one. The watch continues after an error
// that wraps ErrInvalidRegistration or ErrRegistrationsNotCurrent. Registrations do not end in an
// outage: they stay until NATS has been back for their TTL. Any other error is the last item.
func (s Registrations) WatchRegistrations(ctx context.Context, f RegistrationFilter) iter.Seq2[Registered, error] {
	return func(yield func(Registered, error) bool) {
		subject, err := f.subject(s.store.Names())
		if err != nil {
			yield(Registered{}, err)
			return
		}
		w := registrationWatch{stream: s, subject: subject, yield: yield}
		if last, more := w.begin(ctx); more {
			w.run(ctx, last)
		}
	}
}

// registrationWatch follows registrations. The server does not announce expiries, so the watch checks
// them itself.
type registrationWatch struct {
	stream  Registrations
	subject string
	current map[string]Registered
	// perNode and bytes are the number and the size of the current registrations by node.
	perNode, bytes map[string]int
	// reported limits the problems that are yielded.
	reported registrationProblems
	yield    func(Registered, error) bool
	// away reports that the server does not answer. back is the time at which it answered again.
	away bool
	back time.Time
}

// begin yields the current registrations and returns their last sequence.
func (w *registrationWatch) begin(ctx context.Context) (last uint64, more bool) {
	var err error
	w.current, last, err = w.stream.read(ctx, w.subject)
	for _, err := range SplitDenials(err) {
		if !w.yield(Registered{}, err) || !errors.Is(err, ErrInvalidRegistration) {
			return 0, false
		}
	}
	w.perNode, w.bytes = map[string]int{}, map[string]int{}
	for subject, r := range w.current {
		w.perNode[registrationNode(subject)]++
		w.bytes[registrationNode(subject)] += r.size
		if !w.yield(r, nil) {
			return 0, false
		}
	}

	return last, w.yield(Registered{}, nil)
}

// registrationArrival is a message or an error of the stream.
type registrationArrival struct {
	Message
	err error
}

// run yields what arrives after the last sequence, and what expires.
func (w *registrationWatch) run(ctx context.Context, last uint64) {
	scanning, cancel := context.WithCancel(ctx)
	arrivals := make(chan registrationArrival)
	var scan sync.WaitGroup
	scan.Go(func() { w.scan(scanning, last, arrivals) })
	defer scan.Wait()
	defer cancel()
	for more := true; more; {
		select {
		case a := <-arrivals:
			more = w.accept(a)
		case <-time.After(time.Until(w.nextExpiry())):
			more = w.expire(ctx)
		case <-ctx.Done():
			w.yield(Registered{}, context.Cause(ctx))
			more = false
		}
	}
}

// scan sends the messages after a sequence to arrivals until ctx ends. It retries while the server is
// away.
func (w *registrationWatch) scan(ctx context.Context, last uint64, arrivals chan<- registrationArrival) {
	s := w.stream.store
	for ctx.Err() == nil {
		cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{w.subject}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: last + 1}
		for m, err := range scanStream(ctx, s, s.Names().Registrations(), cfg, true) {
			if err != nil && (s.Away() != nil || errors.Is(err, context.DeadlineExceeded)) {
				break
			}
			last = m.Sequence
			select {
			case arrivals <- registrationArrival{m, err}:
			case <-ctx.Done():
			}
		}
		_ = Pause(ctx, registrationRetry)
	}
}

// nextExpiry returns the time of the next expiry, or of the next retry.
func (w *registrationWatch) nextExpiry() time.Time {
	if w.away {
		return time.Now().Add(registrationRetry)
	}
	at := time.Now().Add(time.Hour)
	for _, r := range w.current {
		if end := w.end(r); !end.IsZero() && end.Before(at) {
			at = end
		}
	}

	return at
}

// end returns the time at which a registration ends without a renewal, or zero for never. After an
// outage, in which no node could renew, it is at least a TTL after the return of the server.
func (w *registrationWatch) end(r Registered) time.Time {
	if r.Expires.IsZero() {
		return time.Time{}
	}
	if again := w.back.Add(r.TTL.Std()); again.After(r.Expires) {
		return again
	}

	return r.Expires
}

// accept yields a registration that arrived and reports whether the watch continues.
func (w *registrationWatch) accept(a registrationArrival) bool {
	if a.err != nil {
		w.yield(Registered{}, w.stream.explain("watch registrations", a.err))
		return false
	}
	known, had := w.current[a.Subject]
	if a.Deleted() {
		w.remove(a.Subject)
		known.Gone = true
		return !had || w.yield(known, nil)
	}
	r, err := decodeRegistration(w.stream.store.Names(), a.Message)
	if err != nil {
		return w.problem(a.Subject, err)
	}
	if r.hasEnded(time.Now()) {
		return true
	}
	node := registrationNode(a.Subject)
	switch {
	case !had && w.perNode[node] >= MaxRegistrationsPerNode:
		return w.problem(a.Subject, tooManyRegistrations(node))
	case w.bytes[node]+r.size-known.size > MaxRegistrationBytes:
		return w.problem(a.Subject, tooLargeRegistrations(node))
	case !had:
		w.perNode[node]++
	}
	w.set(a.Subject, r)

	return w.yield(r, nil)
}

// set stores the registration of a subject.
func (w *registrationWatch) set(subject string, r Registered) {
	w.bytes[registrationNode(subject)] += r.size - w.current[subject].size
	w.current[subject] = r
}

// problem yields the problem of a subject unless its node has reached the limit.
func (w *registrationWatch) problem(subject string, err error) bool {
	err = w.reported.note(registrationNode(subject), err, time.Now())

	return err == nil || w.yield(Registered{}, err)
}

// remove removes a registration.
func (w *registrationWatch) remove(subject string) {
	if r, had := w.current[subject]; had {
		w.perNode[registrationNode(subject)]--
		w.bytes[registrationNode(subject)] -= r.size
		delete(w.current, subject)
	}
}

// expire yields the registrations that have ended, once the server confirms it.
func (w *registrationWatch) expire(ctx context.Context) bool {
	err := w.stream.store.Away()
	var stored map[string]Registered
	if err == nil {
		stored, _, err = w.stream.read(ctx, w.subject)
	}
	switch {
	case ctx.Err() != nil:
		return true
	case err != nil && !errors.Is(err, ErrInvalidRegistration):
		wasAway := w.away
		w.away = true
		return wasAway || w.yield(Registered{}, fmt.Errorf("%w, the last known stay until NATS answers: %w", ErrRegistrationsNotCurrent, err))
	case w.away:
		w.away, w.back = false, time.Now()
	}
	now := time.Now()
	for subject, r := range w.current {
		if renewed, ok := stored[subject]; ok && renewed.At.After(r.At) {
			r = renewed
			w.set(subject, r)
		}
		if end := w.end(r); end.IsZero() || now.Before(end) {
			continue
		}
		w.remove(subject)
		r.Gone = true
		if !w.yield(r, nil) {
			return false
		}
	}

	return true
}
