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
// wrap model.ErrInvalidName, registration.ErrInvalid, model.ErrTooLarge, and model.ErrNotProvisioned where
// there is no stream of registrations.
func (s Registrations) Register(ctx context.Context, r registration.Registration) error {
	r.Protocol = model.ProtocolRegistration
	subject, err := registrationSubject(s.store.Names, r)
	if err != nil {
		return err
	}
	if err := r.Validate().Err(); err != nil {
		return fmt.Errorf("%w: %w", registration.ErrInvalid, err)
	}
	data, err := json.Marshal(r)
	if err == nil {
		err = s.store.Ready(ctx)
	}
	if err == nil {
		err = s.store.Sizes.Check(s.store.Names.Registrations, "the registration", data)
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
	subject, err := registrationSubject(s.store.Names, r)
	if err != nil {
		return err
	}
	_, err = s.store.Publish(ctx, NewDeletion(subject), jetstream.WithMsgTTL(max(withdrawnFor, WholeSeconds(min(r.TTL.Std(), withdrawnMax)))))

	return s.explain("withdraw "+r.Service, err)
}

func (s Registrations) explain(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("%s: %w, there is no stream %s: run `muster registration init`", what, model.ErrNotProvisioned, s.store.Names.Registrations)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

// Services returns the registered services, none if there is no stream of registrations. If some of them cannot be read,
// it returns the others and an error that wraps registration.ErrInvalid.
func (s Registrations) Services(ctx context.Context) ([]registration.Registration, error) {
	all, err := s.Registrations(ctx, RegistrationFilter{})
	if errors.Is(err, model.ErrNotProvisioned) {
		err = nil
	}
	out := make([]registration.Registration, len(all))
	for i, r := range all {
		out[i] = r.Registration
	}

	return out, err
}

// Registrations returns the current registrations, the lowest priority number first. The error wraps
// a registration.ErrInvalid for each unreadable registration. The readable ones are returned anyway.
func (s Registrations) Registrations(ctx context.Context, f RegistrationFilter) ([]Registered, error) {
	found, problems, err := s.read(ctx, f)
	if err != nil {
		return nil, err
	}

	return slices.SortedFunc(maps.Values(found.current), compareRegistered), errors.Join(problems...)
}

// decodeRegistration decodes a registration and checks that it matches its subject, which permissions
// guard. The error wraps registration.ErrInvalid.
func decodeRegistration(n Names, m Message) (r Registered, err error) {
	if err = m.Refusal(); err == nil {
		err = model.DecodeStrict(m.Data, &r.Registration)
	}
	var subject string
	if err == nil {
		subject, err = registrationSubject(n, r.Registration)
	}
	switch {
	case err != nil:
	case subject != m.Subject:
		err = fmt.Errorf("its subject would be %s", subject)
	case r.Protocol != model.ProtocolRegistration:
		err = fmt.Errorf("the protocol is %q", r.Protocol)
	case r.TTL <= 0:
		err = fmt.Errorf("the ttl is %s", r.TTL)
	default:
		err = r.Validate().Err()
	}
	if err != nil {
		return r, fmt.Errorf("%w on %s: %w", registration.ErrInvalid, m.Subject, err)
	}
	r.size = len(m.Data)
	r.At = m.Time
	if r.TTL != model.Never {
		r.Expires = m.Time.Add(min(r.TTL.Std(), MaxRegistrationAge))
	}

	return r, nil
}

func (r Registered) hasEnded(now time.Time) bool {
	return !r.Expires.IsZero() && !now.Before(r.Expires)
}

// Flooding returns the nodes that store more registrations than readers accept, each with a
// description. It returns nothing if the stream does not exist, and for users other than
// administrators, who cannot read headers alone.
func (s Registrations) Flooding(ctx context.Context) (map[string]string, error) {
	if !s.store.API.InUse().IsOwn() {
		return nil, nil
	}
	counts := map[string]int{}
	for m, err := range scanStream(ctx, s.store, s.store.Names.Registrations, jetstream.OrderedConsumerConfig{HeadersOnly: true}, false) {
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
			out[node] = fmt.Sprintf("flooding: %d registrations, readers take %d", n, MaxRegistrationsPerNode)
		}
	}

	return out, nil
}
