package registrations

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// pageSize is how many registrations are read at once.
const pageSize = 500

// Stream is the stream of registrations.
type Stream struct{ store *kvstore.Store }

// New makes it of a store.
func New(s *kvstore.Store) Stream { return Stream{s} }

// withdrawnFor is how long it is kept that a registration was withdrawn, for
// those who watch.
const withdrawnFor = time.Minute

// ErrInvalidRegistration is what a node told of a service and cannot be read, or
// is told for another one.
var ErrInvalidRegistration = errors.New("invalid registration")

// ErrNotCurrent is that registrations which are watched may have ended or been
// renewed since, because the server does not answer.
var ErrNotCurrent = errors.New("registrations cannot be kept up to date")

// RegistrationFilter says which registrations are meant. What is empty, or *,
// does not matter.
type Filter struct {
	Cluster, Protocol, Service, Node, Address string
}

// Registered is a registration as it stands in the stream.
type Registered struct {
	model.Registration
	// At is when it was told last, Expires until when it holds without another word.
	At      time.Time `json:"at"`
	Expires time.Time `json:"expires"`
	// Gone says, to who watches, that it does not hold any more.
	Gone bool `json:"gone,omitempty"`
}

// registrationSubject gives where a registration stands; it is checked to be one subject.
func registrationSubject(n kvstore.Names, r model.Registration) (string, error) {
	for _, token := range []string{r.Cluster, r.ProtocolName, r.Service, r.Node} {
		if !model.IsToken(token) {
			return "", fmt.Errorf("%w: %q is not one word of letters, digits, - and _", model.ErrInvalidName, token)
		}
	}
	if r.Address == "" || strings.ContainsAny(r.Address, " \t\r\n*>_+/") || r.Port < 1 {
		return "", fmt.Errorf("%w: the address %q with port %d", model.ErrInvalidName, r.Address, r.Port)
	}

	return n.Registration(r.Cluster, r.ProtocolName, r.Service, r.Node, r.Address, strconv.Itoa(r.Port)), nil
}

// subject gives where what the filter means stands.
func (f Filter) subject(n kvstore.Names) (string, error) {
	parts := []string{f.Cluster, f.Protocol, f.Service, f.Node}
	for i, part := range parts {
		switch parts[i] = cmp.Or(part, "*"); {
		case parts[i] != "*" && !model.IsToken(part):
			return "", fmt.Errorf("%w: %q, write one word of letters, digits, - and _, or *", model.ErrInvalidName, part)
		}
	}
	address := cmp.Or(model.CanonicalAddress(f.Address), "*")
	if address != "*" && strings.ContainsAny(address, " \t\r\n*>_+/") {
		return "", fmt.Errorf("%w: address %q, write all of it, or *", model.ErrInvalidName, address)
	}

	return n.Registration(parts[0], parts[1], parts[2], parts[3], address, "*"), nil
}

// Register tells of a service for its TTL, instead of what was told of it before.
// The errors wrap model.ErrInvalidName, model.ErrTooLarge, and ErrNotProvisioned where
// there is no stream of registrations.
func (s Stream) Register(ctx context.Context, r model.Registration) error {
	r.Protocol = model.ProtocolRegistration
	subject, err := registrationSubject(s.store.Names(), r)
	if err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	ttl := min(kvstore.WholeSeconds(r.TTL.Std()), kvstore.MaxRegistrationTTL)
	_, err = s.store.Publish(ctx, kvstore.NewMsg(subject, data), jetstream.WithMsgTTL(ttl))

	return s.registrationError("register "+r.Service, err)
}

// Withdraw ends a registration before its TTL does.
func (s Stream) Withdraw(ctx context.Context, r model.Registration) error {
	subject, err := registrationSubject(s.store.Names(), r)
	if err != nil {
		return err
	}
	_, err = s.store.Publish(ctx, kvstore.NewDeletion(subject), jetstream.WithMsgTTL(withdrawnFor))

	return s.registrationError("withdraw "+r.Service, err)
}

func (s Stream) registrationError(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("%s: %w, there is no stream %s: run `muster registration init`", what, kvstore.ErrNotProvisioned, s.store.Names().Registrations())
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

// Registrations gives the registrations that hold now, those of the lowest
// priority number first. One that cannot be read is an error that wraps
// ErrInvalidRegistration, and the others are given all the same.
func (s Stream) Registrations(ctx context.Context, f Filter) ([]Registered, error) {
	subject, err := f.subject(s.store.Names())
	if err != nil {
		return nil, err
	}
	var all []Registered
	var failed []error
	now := time.Now()
	for m, err := range s.store.DirectAll(ctx, s.store.Names().Registrations(), subject, pageSize) {
		if err != nil {
			return nil, s.registrationError("read registrations", err)
		}
		if m.Deleted() {
			continue
		}
		r, err := decodeRegistration(s.store.Names(), m)
		switch {
		case err != nil:
			failed = append(failed, err)
		case now.Before(r.Expires):
			all = append(all, r)
		}
	}
	slices.SortFunc(all, compareRegistered)

	return all, errors.Join(failed...)
}

func compareRegistered(a, b Registered) int {
	return cmp.Or(
		cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Service, b.Service), cmp.Compare(a.ProtocolName, b.ProtocolName),
		cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Node, b.Node),
	)
}

// decodeRegistration reads a registration, which must say of itself what its
// subject says: only that is what permissions are given by.
func decodeRegistration(n kvstore.Names, m kvstore.Message) (Registered, error) {
	var r Registered
	d := json.NewDecoder(bytes.NewReader(m.Data))
	d.DisallowUnknownFields()
	err := d.Decode(&r.Registration)
	if err == nil && d.More() {
		err = errors.New("something follows it")
	}
	if err != nil {
		return r, fmt.Errorf("%w on %s: %w", ErrInvalidRegistration, m.Subject, err)
	}
	subject, err := registrationSubject(n, r.Registration)
	switch {
	case err != nil:
		return r, fmt.Errorf("%w on %s: %w", ErrInvalidRegistration, m.Subject, err)
	case subject != m.Subject:
		return r, fmt.Errorf("%w on %s: it says to be %s", ErrInvalidRegistration, m.Subject, subject)
	case r.Protocol != model.ProtocolRegistration:
		return r, fmt.Errorf("%w on %s: the protocol is %q", ErrInvalidRegistration, m.Subject, r.Protocol)
	case r.Priority < 1 || r.Priority > 255 || r.Port > 65535 || r.TTL <= 0:
		return r, fmt.Errorf("%w on %s: priority %d, port %d or ttl %s is out of bounds", ErrInvalidRegistration, m.Subject, r.Priority, r.Port, r.TTL)
	}
	r.At, r.Expires = m.Time, m.Time.Add(min(r.TTL.Std(), kvstore.MaxRegistrationTTL))

	return r, nil
}

// WatchRegistrations gives the registrations that hold now, and then each that
// is told anew, renewed or, with Gone, not there any more, until ctx ends. One
// that cannot be read is an error that wraps ErrInvalidRegistration, and it goes
// on, as after one that wraps ErrNotCurrent: what holds when NATS goes away does so
// until NATS has been back for its TTL. Any other error is the last thing given. The empty Registered that comes
// first after those of now says that these were all.
func (s Stream) WatchRegistrations(ctx context.Context, f Filter) iter.Seq2[Registered, error] {
	return func(yield func(Registered, error) bool) {
		subject, err := f.subject(s.store.Names())
		if err != nil {
			yield(Registered{}, err)
			return
		}
		w := registrationWatch{store: s.store, subject: subject, standing: map[string]Registered{}, yield: yield}
		w.run(ctx)
	}
}
