package kvstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model/registration"
)

const (
	// MaxRegistrationsPerNode limits the registrations of a node that readers accept. A node can store
	// any number.
	MaxRegistrationsPerNode = 256
	// MaxRegistrationBytes limits the size of these registrations in bytes.
	MaxRegistrationBytes = 256 << 10
	// maxProblems limits the reported problems of a node within problemsEvery.
	maxProblems   = 8
	problemsEvery = 10 * time.Minute
)

// ErrRegistrationsNotCurrent reports that a watch may be out of date because the server does not answer.
var ErrRegistrationsNotCurrent = errors.New("registrations are outdated")

// WatchRegistrations yields the current registrations, then an empty Registered, and then each new,
// renewed or ended one until ctx ends. Gone marks an ended one. The watch continues after an error
// that wraps registration.ErrInvalid or ErrRegistrationsNotCurrent. Registrations do not end in an
// outage: they stay until NATS has been back for their TTL. Any other error is the last item.
func (s Registrations) WatchRegistrations(ctx context.Context, f RegistrationFilter) iter.Seq2[Registered, error] {
	return func(yield func(Registered, error) bool) {
		w, problems, err := s.read(ctx, f)
		if err != nil {
			yield(Registered{}, err)
			return
		}
		for more := w.yield(problems, yield) && yield(Registered{}, nil); more; more = w.yield(problems, yield) {
			if Pause(ctx, followPause) != nil {
				yield(Registered{}, context.Cause(ctx))
				return
			}
			problems = w.poll(ctx)
			w.expire(ctx)
		}
	}
}

// read returns the registrations that a filter selects, and the problems of unreadable registrations and of nodes above a
// limit.
func (s Registrations) read(ctx context.Context, f RegistrationFilter) (w *registrationView, problems []error, err error) {
	subject, err := f.subject(s.store.Names)
	if err != nil {
		return nil, nil, err
	}
	w = &registrationView{store: s.store, subject: subject, current: map[string]Registered{}, former: map[string]Registered{}, subjects: map[string][]string{}, bytes: map[string]int{}}
	problems = w.poll(ctx)

	return w, problems, s.explain("read registrations", w.failed)
}

// registrationView holds registrations. It accepts a limited number of each node: the first subjects in alphabetical order,
// so that renewals do not change the selection.
type registrationView struct {
	store   *Store
	subject string
	// current holds the registrations by subject. former holds the registrations of the changed subjects before the
	// change; a new one is empty there.
	current, former map[string]Registered
	// subjects holds the sorted subjects of each node, and bytes their size.
	subjects map[string][]string
	bytes    map[string]int
	problems registrationProblems
	// last is the sequence of the last message.
	last uint64
	// failed is the error of the last poll. back is the time of the first poll without an error after one with an error.
	failed error
	back   time.Time
}

// yield yields problems and changes, and reports whether the caller wants more.
func (w *registrationView) yield(problems []error, yield func(Registered, error) bool) bool {
	for _, err := range problems {
		if !yield(Registered{}, err) {
			return false
		}
	}
	for subject, r := range w.former {
		if now, is := w.current[subject]; is {
			r = now
		} else {
			r.Gone = true
		}
		if !yield(r, nil) {
			return false
		}
	}
	clear(w.former)

	return true
}

// poll reads the messages that were stored since the last poll, and returns the problems to report.
func (w *registrationView) poll(ctx context.Context) (problems []error) {
	err := w.store.Away()
	if err == nil {
		cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{w.subject}, OptStartSeq: w.last + 1}
		var m Message
		for m, err = range readStream(ctx, w.store, w.store.Names.Registrations, cfg, false) {
			if err != nil {
				break
			}
			w.last = m.Sequence
			problems = append(problems, w.accept(m)...)
		}
	}
	switch {
	case err == nil && w.failed != nil:
		w.back = time.Now()
	case err != nil && w.failed == nil && ctx.Err() == nil:
		problems = append(problems, fmt.Errorf("%w, the last known stay until NATS answers: %w", ErrRegistrationsNotCurrent, err))
	}
	w.failed = err

	return problems
}

func (w *registrationView) accept(m Message) (problems []error) {
	node := registrationNode(m.Subject)
	if m.Deleted() && !m.Forged {
		w.remove(m.Subject)
		return nil
	}
	r, err := decodeRegistration(w.store.Names, m)
	switch {
	case err != nil:
		if err = w.problems.note(node, err, time.Now()); err != nil {
			problems = append(problems, err)
		}
		return problems
	case r.hasEnded(time.Now()):
		return nil
	}
	w.touch(m.Subject)
	if _, had := w.current[m.Subject]; !had {
		at, _ := slices.BinarySearch(w.subjects[node], m.Subject)
		w.subjects[node] = slices.Insert(w.subjects[node], at, m.Subject)
	}
	w.bytes[node] += r.size - w.current[m.Subject].size
	w.current[m.Subject] = r
	for {
		var over error
		switch subjects := w.subjects[node]; {
		case len(subjects) > MaxRegistrationsPerNode:
			over = fmt.Errorf("%w: node %s registers more than %d services, the others are left out", registration.ErrInvalid, node, MaxRegistrationsPerNode)
		case w.bytes[node] > MaxRegistrationBytes:
			over = fmt.Errorf("%w: node %s registers more than %d bytes, the others are left out", registration.ErrInvalid, node, MaxRegistrationBytes)
		default:
			return problems
		}
		if w.problems.isNew(over, time.Now()) {
			problems = append(problems, over)
		}
		w.remove(w.subjects[node][len(w.subjects[node])-1])
	}
}

// touch records the registration of a subject before its first change.
func (w *registrationView) touch(subject string) {
	if _, is := w.former[subject]; !is {
		w.former[subject] = w.current[subject]
	}
}

func (w *registrationView) remove(subject string) {
	r, had := w.current[subject]
	if !had {
		return
	}
	w.touch(subject)
	w.bytes[r.Node] -= r.size
	w.subjects[r.Node] = slices.DeleteFunc(w.subjects[r.Node], func(s string) bool { return s == subject })
	delete(w.current, subject)
	if w.former[subject].Node == "" {
		delete(w.former, subject)
	}
}

// expire removes the registrations that have ended without a renewal. Nodes cannot renew in an outage, so registrations
// stay for a TTL after the return of the server.
func (w *registrationView) expire(ctx context.Context) {
	if w.failed != nil || ctx.Err() != nil {
		return
	}
	now := time.Now()
	for subject, r := range w.current {
		if r.hasEnded(now) && !now.Before(w.back.Add(r.TTL.Std())) {
			w.remove(subject)
		}
	}
}

// registrationNode returns the node of a subject, which the server's permissions guard, or "" for
// another subject.
func registrationNode(subject string) string {
	const place, tokens = 5, 8
	if parts := strings.Split(subject, "."); len(parts) == tokens {
		return parts[place]
	}

	return ""
}

type registrationProblems struct {
	of    map[string]int
	over  map[string]bool
	since time.Time
}

// begin forgets the problems that were reported more than problemsEvery ago.
func (p *registrationProblems) begin(now time.Time) {
	if p.of == nil || now.Sub(p.since) > problemsEvery {
		p.of, p.over, p.since = map[string]int{}, map[string]bool{}, now
	}
}

func (p *registrationProblems) isNew(err error, now time.Time) bool {
	p.begin(now)
	known := p.over[err.Error()]
	p.over[err.Error()] = true

	return !known
}

// note returns the error to report for a problem of a node, or nil.
func (p *registrationProblems) note(node string, err error, now time.Time) error {
	p.begin(now)
	switch p.of[node]++; {
	case p.of[node] > maxProblems:
		return nil
	case p.of[node] == maxProblems:
		return fmt.Errorf("%w (further ones of node %s are not reported for a while)", err, node)
	default:
		return err
	}
}

func compareRegistered(a, b Registered) int {
	return cmp.Or(
		cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Service, b.Service), cmp.Compare(a.ProtocolName, b.ProtocolName),
		cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Node, b.Node),
	)
}
