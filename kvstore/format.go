package kvstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore/connect"
)

// FormatKey is the metadata key for the format of a bucket or stream, which is a number.
const (
	FormatKey    = "muster-format"
	firstFormat  = "1"
	secondFormat = "2"
)

// formatRetry is how long a missing or unknown format is remembered.
const formatRetry = 10 * time.Second

// ErrFormat reports a bucket or stream in an unknown format. muster neither reads nor writes it.
var ErrFormat = errors.New("unknown format")

// CheckFormat returns an error that wraps ErrFormat if the format of a bucket or stream is unknown. A
// missing format is accepted, and provisioning adds it.
func CheckFormat(have, want api.StreamConfig) error {
	has, knows := have.Metadata[FormatKey], want.Metadata[FormatKey]
	if has == "" || has == knows {
		return nil
	}

	return fmt.Errorf("%w: %s has format %s, this muster knows format %s: use the version of muster that provisioned it, or a later one", ErrFormat, have.Name, has, knows)
}

// binding is the result of the format check of a fleet. Its lock is a channel, so that a waiting caller can
// give up.
type binding struct {
	conn  *Connection
	names Names
	sizes *Sizes
	own   map[string]bool
	lock  chan struct{}
	// there holds the existing streams.
	there map[string]bool
	// err is valid until the next reconnect if complete is set, otherwise until a time.
	err      error
	complete bool
	until    time.Time
	epoch    uint64
}

func newBinding(s *Store) *binding {
	b := &binding{conn: s.Connection, names: s.Names, sizes: &s.Sizes, own: map[string]bool{}, lock: make(chan struct{}, 1)}
	for _, stream := range b.names.Streams() {
		b.own[stream.Config.Name] = true
	}

	return b
}

// Bind checks the formats of the fleet once per connection, before a read or write of a stream. The
// error wraps ErrFormat. If the server does not answer, the last result remains valid.
func (b *binding) Bind(ctx context.Context, stream string) error {
	if b.own[stream] {
		return b.bindAll(ctx)
	}
	if !b.conn.API.IsFound() {
		_ = b.bindAll(ctx) // this finds the API prefix
	}

	return ctx.Err()
}

// Has reports whether the fleet has a stream for a subject. It asks again for a stream that was
// missing.
func (b *binding) Has(ctx context.Context, stream, subject string) (bool, error) {
	if err := b.bindAll(ctx); err != nil {
		return false, err
	}
	unlock, err := b.wait(ctx)
	if err != nil {
		return false, err
	}
	there := b.there[stream]
	unlock()
	if there {
		return true, nil
	}
	found, err := b.conn.Infos(ctx, subject)
	_, there = found[stream]

	return there, err
}

func (b *binding) bindAll(ctx context.Context) error {
	unlock, err := b.wait(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	isValid := b.epoch == b.conn.Conn.Stats().Reconnects && (b.complete || time.Now().Before(b.until))
	if (b.sizes.stale.Swap(false) || !isValid) && b.conn.Conn.IsConnected() {
		if _, err := b.survey(ctx); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if b.err != nil {
		return Unusable{Err: b.err}
	}

	return nil
}

// Survey returns all streams of the account. It also counts as the format check of this connection.
func (b *binding) Survey(ctx context.Context) (Infos, error) {
	unlock, err := b.wait(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	b.sizes.stale.Store(false)

	return b.survey(ctx)
}

// survey lists the streams and records their formats. The caller holds the lock.
func (b *binding) survey(ctx context.Context) (Infos, error) {
	epoch := b.conn.Conn.Stats().Reconnects
	found, err := b.conn.Infos(ctx, "")
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	b.epoch, b.until, b.complete = epoch, time.Now().Add(formatRetry), false
	if err == nil {
		b.sizes.note(found)
		silent := found.silent()
		b.conn.silent.Store(&silent)
		b.judge(found)
	}
	if reason := (Unusable{}); errors.As(err, &reason) {
		b.err = reason.Err
	}
	if old := connect.CheckServer(b.conn.Conn.ConnectedServerVersion()); old != nil {
		b.err, b.complete = old, true
	}

	return found, err
}

func (b *binding) wait(ctx context.Context) (unlock func(), err error) {
	select {
	case b.lock <- struct{}{}:
		return func() { <-b.lock }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *binding) judge(found Infos) {
	var wrong []error
	missing := false
	b.there = map[string]bool{}
	for _, stream := range b.names.Streams() {
		info, listed := found[stream.Config.Name]
		b.there[stream.Config.Name] = listed
		switch {
		case info == nil:
			missing = missing || !stream.Optional
		case CheckFormat(info.Config, stream.Config) != nil:
			wrong = append(wrong, CheckFormat(info.Config, stream.Config))
		}
	}
	b.err = errors.Join(wrong...)
	b.complete = b.err == nil && !missing
}

func (b *binding) isComplete(ctx context.Context) bool {
	unlock, ended := b.wait(ctx)
	if ended != nil {
		return false
	}
	defer unlock()

	return b.complete && b.epoch == b.conn.Conn.Stats().Reconnects
}

// Routed replaces err by Unrouted if the fleet has all its streams but the account of the user does
// not forward the subject.
func (s *Store) Routed(ctx context.Context, subject string, err error) error {
	if !errors.Is(err, jetstream.ErrNoStreamResponse) || s.API.InUse().IsOwn() || !s.isComplete(ctx) {
		return err
	}
	// A server without a connection to its cluster, or a stream without a leader, reports the same
	// error.
	found, failed := s.Infos(ctx, "")
	if failed != nil || found.hasUnanswered() {
		return err
	}

	return Unrouted{Subject: subject, Err: err}
}
