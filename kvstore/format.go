package kvstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go/jetstream"
)

// FormatKey is the key of the format in the metadata of each bucket and stream,
// which is a number. Manifests and commands are in their second: the first kept an
// index beside the manifests of a family, and one subject for all its commands.
const (
	FormatKey    = "muster-format"
	firstFormat  = "1"
	secondFormat = "2"
)

// formatRetry is how long a fleet that is not provisioned, or of another format,
// counts as such.
const formatRetry = 10 * time.Second

// ErrFormat is a bucket or stream in a format that this version of muster does
// not know. It is neither read nor written.
var ErrFormat = errors.New("unknown format")

// CheckFormat returns an error that wraps ErrFormat unless the format of a bucket
// or stream is known. One without a number is of the first format.
func CheckFormat(have, want api.StreamConfig) error {
	has, knows := formatOf(have), formatOf(want)
	if has == knows || has == firstFormat {
		return nil
	}

	return fmt.Errorf("%w: %s has format %s, this muster knows format %s: use the version of muster that provisioned it, or a later one", ErrFormat, have.Name, has, knows)
}

// IsFormer reports whether a bucket or stream of a known format must be converted,
// which provisioning does.
func IsFormer(have, want api.StreamConfig) bool { return formatOf(have) != formatOf(want) }

func formatOf(c api.StreamConfig) string { return cmp.Or(c.Metadata[FormatKey], firstFormat) }

// binding is what is known of the formats of a fleet. Its lock is a channel, so
// that whoever waits for it can give up.
type binding struct {
	own  map[string]bool
	lock chan struct{}
	// there are the streams that were found.
	there map[string]bool
	// err holds until the next connection where complete, else until a time.
	err      error
	complete bool
	until    time.Time
	epoch    uint64
}

func newBinding(n Names) binding {
	b := binding{own: map[string]bool{}, lock: make(chan struct{}, 1)}
	for _, stream := range n.Streams() {
		b.own[stream.Config.Name] = true
	}

	return b
}

// Bind checks the formats of the fleet, once for each connection, before a stream
// of the fleet is read or written. The error wraps ErrFormat. A server that does not
// answer changes nothing of what is known.
func (s *Store) Bind(ctx context.Context, stream string) error {
	if !s.binding.own[stream] {
		if !s.places.IsFound() {
			_ = s.bindAll(ctx) // which finds it
		}
		return ctx.Err()
	}

	return s.bindAll(ctx)
}

// Has reports whether the fleet has a stream, which keeps a subject. One that it lacked when
// that was last asked is looked for again.
func (s *Store) Has(ctx context.Context, stream, subject string) (bool, error) {
	if err := s.bindAll(ctx); err != nil {
		return false, err
	}
	unlock, err := s.binding.wait(ctx)
	if err != nil {
		return false, err
	}
	there := s.binding.there[stream]
	unlock()
	if there {
		return true, nil
	}
	found, err := s.Infos(ctx, subject)
	_, there = found[stream]

	return there, err
}

func (s *Store) bindAll(ctx context.Context) error {
	b := &s.binding
	unlock, err := b.wait(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	epoch := s.nc.Stats().Reconnects
	if !s.sizes.stale.Swap(false) && b.epoch == epoch && (b.complete || time.Now().Before(b.until)) || !s.nc.IsConnected() {
		return b.refusal()
	}
	if _, err := s.survey(ctx); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}

	return b.refusal()
}

// Survey returns all streams of the account, and takes what it finds as the check of the formats, which is not made
// once more before something is read or written.
func (s *Store) Survey(ctx context.Context) (Infos, error) {
	unlock, err := s.binding.wait(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s.sizes.stale.Store(false)

	return s.survey(ctx)
}

// survey lists the streams, and notes their formats; the lock is held.
func (s *Store) survey(ctx context.Context) (Infos, error) {
	b, epoch := &s.binding, s.nc.Stats().Reconnects
	found, err := s.Infos(ctx, "")
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	b.epoch, b.until, b.complete = epoch, time.Now().Add(formatRetry), false
	if err == nil {
		s.sizes.note(found)
		silent := found.silent()
		s.silent.Store(&silent)
		b.judge(s.names, found)
	}
	if reason := (Unusable{}); errors.As(err, &reason) {
		b.err = reason.Err
	}
	if old := CheckServer(s.nc); old != nil {
		b.err, b.complete = old, true
	}

	return found, err
}

// wait takes the lock, unless the context ends before.
func (b *binding) wait(ctx context.Context) (unlock func(), err error) {
	select {
	case b.lock <- struct{}{}:
		return func() { <-b.lock }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refusal returns why nothing is read or written, nil for no reason.
func (b *binding) refusal() error {
	if b.err == nil {
		return nil
	}

	return Unusable{Err: b.err}
}

// judge notes the formats of the streams that were found.
func (b *binding) judge(n Names, found Infos) {
	var wrong []error
	missing := false
	b.there = map[string]bool{}
	for _, stream := range n.Streams() {
		info, listed := found[stream.Config.Name]
		b.there[stream.Config.Name] = listed
		switch {
		case info == nil:
			missing = missing || !stream.Optional
		case CheckFormat(info.Config, stream.Config) != nil:
			wrong = append(wrong, CheckFormat(info.Config, stream.Config))
		case IsFormer(info.Config, stream.Config):
			wrong = append(wrong, fmt.Errorf("%w: %s has the format of an earlier version, run `%s` to convert it", ErrNotProvisioned, stream.Config.Name, n.Init()))
		}
	}
	b.err = errors.Join(wrong...)
	b.complete = b.err == nil && !missing
}

// Routed returns the error of storing a message, a denial.Unrouted where the fleet has all
// its streams and is of another account. That is looked up until the context ends.
func (s *Store) Routed(ctx context.Context, subject string, err error) error {
	if !errors.Is(err, jetstream.ErrNoStreamResponse) || s.places.InUse().IsOwn() || !s.isComplete(ctx) {
		return err
	}
	// A server that is cut off from its cluster, or a stream without a leader, takes nothing either.
	found, failed := s.Infos(ctx, "")
	if failed != nil || found.hasUnanswered() {
		return err
	}

	return Unrouted{Subject: subject, Err: err}
}

// isComplete reports whether all streams were found by this connection.
func (s *Store) isComplete(ctx context.Context) bool {
	unlock, ended := s.binding.wait(ctx)
	if ended != nil {
		return false
	}
	defer unlock()

	return s.binding.complete && s.binding.epoch == s.nc.Stats().Reconnects
}
