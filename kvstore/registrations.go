package kvstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// registrationPage is the number of registrations in one read.
const registrationPage = 500

// Registrations accesses the stream of registrations.
type Registrations struct{ store *Store }

// NewRegistrations returns the registrations of the fleet of s.
func NewRegistrations(s *Store) Registrations { return Registrations{s} }

// The marker of a withdrawn registration is stored for at least withdrawnFor, so that watches see it,
// and for at most withdrawnMax.
const (
	withdrawnFor = time.Minute
	withdrawnMax = 24 * time.Hour
)

var (
	// ErrInvalidRegistration is registration.ErrInvalid.
	ErrInvalidRegistration = registration.ErrInvalid
	// ErrRegistrationsNotCurrent reports that a watch may be out of date because the server does not
	// answer.
	ErrRegistrationsNotCurrent = errors.New("registrations cannot be kept up to date")
)

// RegistrationFilter selects registrations. An empty field or * matches everything.
type RegistrationFilter struct {
	Cluster, Protocol, Service, Node, Address string
}

// Registered is a registration with its times.
type Registered struct {
	registration.Registration
	// At is the time of the last renewal. Expires is the end without a renewal, or zero for never.
	At      time.Time `json:"at"`
	Expires time.Time `json:"expires,omitzero"`
	// Gone reports that the registration has ended. Only watches set it.
	Gone bool `json:"gone,omitempty"`

	// size is the stored size in bytes.
	size int
}

// registrationSubject returns the subject of a registration.
func registrationSubject(n Names, r registration.Registration) (string, error) {
	for _, token := range []string{r.Cluster, r.ProtocolName, r.Service, r.Node} {
		if !model.IsToken(token) {
			return "", fmt.Errorf("%w: %q is not one word of letters, digits, - and _", model.ErrInvalidName, token)
		}
	}
	if r.Address == "" || strings.ContainsAny(r.Address, " \t\r\n*>_+/") || r.Port < 0 {
		return "", fmt.Errorf("%w: the address %q with port %d", model.ErrInvalidName, r.Address, r.Port)
	}

	return n.Registration(r.Cluster, r.ProtocolName, r.Service, r.Node, r.Address, strconv.Itoa(r.Port)), nil
}

// subject returns the subject pattern of the filter.
func (f RegistrationFilter) subject(n Names) (string, error) {
	parts := []string{f.Cluster, f.Protocol, f.Service, f.Node}
	for i, part := range parts {
		if parts[i] = cmp.Or(part, "*"); parts[i] != "*" && !model.IsToken(part) {
			return "", fmt.Errorf("%w: %q, write one word of letters, digits, - and _, or *", model.ErrInvalidName, part)
		}
	}
	address := cmp.Or(registration.CanonicalAddress(f.Address), "*")
	if address != "*" && strings.ContainsAny(address, " \t\r\n*>_+/") {
		return "", fmt.Errorf("%w: address %q, write all of it, or *", model.ErrInvalidName, address)
	}

	return n.Registration(parts[0], parts[1], parts[2], parts[3], address, "*"), nil
}

// Register registers a service for its TTL, or renews its registration. The errors
// wrap model.ErrInvalidName, ErrInvalidRegistration, model.ErrTooLarge, and ErrNotProvisioned where
// there is no stream of registrations.
func (s Registrations) Register(ctx context.Context, r registration.Registration) error {
	r.Protocol = model.ProtocolRegistration
	subject, err := registrationSubject(s.store.Names(), r)
	if err != nil {
		return err
	}
	if err := r.Validate().Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidRegistration, err)
	}
	data, err := json.Marshal(r)
	if err == nil {
		err = s.store.Ready(ctx)
	}
	if err == nil {
		err = s.store.Sizes().Check(s.store.Names().Registrations(), "the registration", data)
	}
	if err != nil {
		return s.explain("register "+r.Service, err)
	}
	m := NewMsg(subject, data)
	// Unlike a duration, "never" overrides the maximum age of the stream.
	m.Header.Set(jetstream.MsgTTLHeader, model.Never.String())
	if r.TTL != model.Never {
		m.Header.Set(jetstream.MsgTTLHeader, WholeSeconds(r.TTL.Std()).String())
	}
	_, err = s.store.Publish(ctx, m)

	return s.explain("register "+r.Service, err)
}

// Withdraw ends a registration before its TTL. The marker remains for the TTL, at most a day. Without
// it, a killed server could restore the registration.
func (s Registrations) Withdraw(ctx context.Context, r registration.Registration) error {
	subject, err := registrationSubject(s.store.Names(), r)
	if err != nil {
		return err
	}
	_, err = s.store.Publish(ctx, NewDeletion(subject), jetstream.WithMsgTTL(max(withdrawnFor, WholeSeconds(min(r.TTL.Std(), withdrawnMax)))))

	return s.explain("withdraw "+r.Service, err)
}

// explain adds the remedy if the stream does not exist.
func (s Registrations) explain(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("%s: %w, there is no stream %s: run `muster registration init`", what, ErrNotProvisioned, s.store.Names().Registrations())
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

// Services returns the registered services, none if there is no stream of registrations. If some of them cannot be read,
// it returns the others and an error that wraps registration.ErrInvalid.
func (s Registrations) Services(ctx context.Context) ([]registration.Registration, error) {
	all, err := s.Registrations(ctx, RegistrationFilter{})
	if errors.Is(err, ErrNotProvisioned) {
		err = nil
	}
	out := make([]registration.Registration, len(all))
	for i, r := range all {
		out[i] = r.Registration
	}

	return out, err
}

// Registrations returns the current registrations, the lowest priority number first. The error wraps
// an ErrInvalidRegistration for each unreadable registration. The readable ones are returned anyway.
func (s Registrations) Registrations(ctx context.Context, f RegistrationFilter) ([]Registered, error) {
	subject, err := f.subject(s.store.Names())
	if err != nil {
		return nil, err
	}
	found, _, err := s.read(ctx, subject)
	all := slices.SortedFunc(maps.Values(found), compareRegistered)

	return all, err
}

// read returns the accepted registrations of each node by subject, and the last sequence. The error
// wraps the errors of unreadable registrations and of nodes above a limit.
func (s Registrations) read(ctx context.Context, subject string) (found map[string]Registered, last uint64, err error) {
	kept, reported := newBoundedRegistrations(), registrationProblems{}
	var failed []error
	for m, err := range scanDirect(ctx, s.store, s.store.Names().Registrations(), subject, registrationPage) {
		if err != nil {
			return nil, 0, s.explain("read registrations", err)
		}
		last = m.Sequence
		if m.Deleted() && !m.Forged {
			continue
		}
		r, err := decodeRegistration(s.store.Names(), m)
		switch {
		case err != nil:
			failed = append(failed, reported.note(registrationNode(m.Subject), err, time.Now()))
		case !r.hasEnded(time.Now()):
			kept.add(m.Subject, r)
		}
	}

	return kept.found, last, errors.Join(append(failed, kept.end()...)...)
}

func compareRegistered(a, b Registered) int {
	return cmp.Or(
		cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Service, b.Service), cmp.Compare(a.ProtocolName, b.ProtocolName),
		cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Node, b.Node),
	)
}

// decodeRegistration decodes a registration and checks that it matches its subject, which permissions
// guard.
func decodeRegistration(n Names, m Message) (Registered, error) {
	var r Registered
	if m.Forged {
		return r, fmt.Errorf("%w on %s: %w", ErrInvalidRegistration, m.Subject, m.Refusal())
	}
	if err := model.DecodeStrict(m.Data, &r.Registration); err != nil {
		return r, fmt.Errorf("%w on %s: %w", ErrInvalidRegistration, m.Subject, err)
	}
	subject, err := registrationSubject(n, r.Registration)
	switch {
	case err != nil:
		return r, fmt.Errorf("%w on %s: %w", ErrInvalidRegistration, m.Subject, err)
	case subject != m.Subject:
		return r, fmt.Errorf("%w on %s: its subject would be %s", ErrInvalidRegistration, m.Subject, subject)
	case r.Protocol != model.ProtocolRegistration:
		return r, fmt.Errorf("%w on %s: the protocol is %q", ErrInvalidRegistration, m.Subject, r.Protocol)
	case r.TTL <= 0:
		return r, fmt.Errorf("%w on %s: the ttl is %s", ErrInvalidRegistration, m.Subject, r.TTL)
	}
	if err := r.Validate().Err(); err != nil {
		return r, fmt.Errorf("%w on %s: %w", ErrInvalidRegistration, m.Subject, err)
	}
	r.size = len(m.Data)
	r.At = m.Time
	if r.TTL != model.Never {
		r.Expires = m.Time.Add(min(r.TTL.Std(), MaxRegistrationAge))
	}

	return r, nil
}

// hasEnded reports whether the registration has ended.
func (r Registered) hasEnded(now time.Time) bool {
	return !r.Expires.IsZero() && !now.Before(r.Expires)
}

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

// registrationNode returns the node of a subject, which the server's permissions guard, or "" for
// another subject.
func registrationNode(subject string) string {
	const place, tokens = 5, 8
	if parts := strings.Split(subject, "."); len(parts) == tokens {
		return parts[place]
	}

	return ""
}

// boundedRegistrations holds a limited number of registrations per node. It keeps the first subjects
// in alphabetical order, so that renewals do not change the selection.
type boundedRegistrations struct {
	found  map[string]Registered
	byNode map[string][]string
	// bytes is the size of found by node.
	bytes map[string]int
	// over has an error for each node above a limit.
	over map[string]error
}

func newBoundedRegistrations() *boundedRegistrations {
	return &boundedRegistrations{found: map[string]Registered{}, byNode: map[string][]string{}, bytes: map[string]int{}, over: map[string]error{}}
}

// add adds a registration. It holds up to twice the limit of a node before it cuts.
func (b *boundedRegistrations) add(subject string, r Registered) {
	node := registrationNode(subject)
	former, known := b.found[subject]
	if !known {
		b.byNode[node] = append(b.byNode[node], subject)
	}
	b.found[subject] = r
	b.bytes[node] += r.size - former.size
	if len(b.byNode[node]) > 2*MaxRegistrationsPerNode || b.bytes[node] > 2*MaxRegistrationBytes {
		b.cut(node)
	}
}

// cut removes the registrations of a node above the limits.
func (b *boundedRegistrations) cut(node string) {
	subjects := b.byNode[node]
	slices.Sort(subjects)
	kept, bytes := 0, 0
	for kept < min(len(subjects), MaxRegistrationsPerNode) && bytes+b.found[subjects[kept]].size <= MaxRegistrationBytes {
		bytes += b.found[subjects[kept]].size
		kept++
	}
	switch {
	case kept == len(subjects):
	case kept < MaxRegistrationsPerNode:
		b.over[node] = tooLargeRegistrations(node)
	default:
		b.over[node] = tooManyRegistrations(node)
	}
	for _, subject := range subjects[kept:] {
		delete(b.found, subject)
	}
	b.byNode[node], b.bytes[node] = subjects[:kept], bytes
}

// end applies the limits and returns an error for each node that exceeded one.
func (b *boundedRegistrations) end() []error {
	for node := range b.byNode {
		b.cut(node)
	}
	var errs []error
	for _, node := range slices.Sorted(maps.Keys(b.over)) {
		errs = append(errs, b.over[node])
	}

	return errs
}

// tooManyRegistrations returns the error for a node with too many registrations.
func tooManyRegistrations(node string) error {
	return fmt.Errorf("%w: node %s registers more than %d services, the others are left out", ErrInvalidRegistration, node, MaxRegistrationsPerNode)
}

// tooLargeRegistrations returns the error for a node whose registrations are too large together.
func tooLargeRegistrations(node string) error {
	return fmt.Errorf("%w: node %s registers more than %d bytes, the others are left out", ErrInvalidRegistration, node, MaxRegistrationBytes)
}

// registrationProblems limits the reported problems of each node.
type registrationProblems struct {
	of    map[string]int
	since time.Time
}

// note returns the error to report for a problem of a node, or nil.
func (p *registrationProblems) note(node string, err error, now time.Time) error {
	if p.of == nil || now.Sub(p.since) > problemsEvery {
		p.of, p.since = map[string]int{}, now
	}
	switch p.of[node]++; {
	case p.of[node] > maxProblems:
		return nil
	case p.of[node] == maxProblems:
		return fmt.Errorf("%w (further ones of node %s are not reported for a while)", err, node)
	default:
		return err
	}
}

// Flooding returns the nodes that store more registrations than readers accept, each with a
// description. It returns nothing if the stream does not exist, and for users other than
// administrators, who cannot read headers alone.
func (s Registrations) Flooding(ctx context.Context) (map[string]string, error) {
	if !s.store.Places().InUse().IsOwn() {
		return nil, nil
	}
	counts := map[string]int{}
	for m, err := range scanStream(ctx, s.store, s.store.Names().Registrations(), jetstream.OrderedConsumerConfig{HeadersOnly: true}, false) {
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return nil, nil
		case err != nil:
			return nil, err
		case !m.Deleted():
			counts[registrationNode(m.Subject)]++
		}
	}
	out := map[string]string{}
	for node, n := range counts {
		if n > MaxRegistrationsPerNode {
			out[node] = fmt.Sprintf("flooding: %d registrations, of which readers take %d", n, MaxRegistrationsPerNode)
		}
	}

	return out, nil
}
