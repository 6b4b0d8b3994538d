package kvstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/musterfleet/muster/model"
)

// ErrFull reports that a stream has reached the size limit set by an administrator.
var ErrFull = errors.New("full")

const storeFailed jetstream.ErrorCode = 10077

// headerRoom is reserved for the headers of a message, which count as payload.
const headerRoom = 1024

// NewMsg returns a message with an empty header map.
func NewMsg(subject string, data []byte) *nats.Msg {
	return &nats.Msg{Subject: subject, Header: nats.Header{}, Data: data}
}

// NewDeletion returns a removal marker for a key.
func NewDeletion(subject string) *nats.Msg {
	m := NewMsg(subject, nil)
	m.Header.Set(operationHeader, "DEL")

	return m
}

// Publish stores a message in a stream of the fleet and returns its sequence. It repeats a message
// without an answer, but stores a value of an operator once. The error wraps model.ErrTooLarge,
// ErrFormat, model.ErrNotPermitted, ErrNoRoom or ErrFull.
func (s *Store) Publish(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (uint64, error) {
	return s.whenReady(ctx, m.Subject, func(ctx context.Context) (uint64, error) {
		if err := s.Sizes.CheckMessage("the message", m.Data); err != nil {
			return 0, err
		}
		if stream := s.streamOfOperators(m.Subject); stream != "" {
			return s.publishOnce(ctx, stream, m, opts)
		}
		return s.publish(ctx, m, opts)
	})
}

// whenReady calls send for at most publishTimeout, and explains its error.
func (s *Store) whenReady(ctx context.Context, subject string, send func(ctx context.Context) (uint64, error)) (uint64, error) {
	if err := s.Ready(ctx); err != nil {
		return 0, err
	}
	limited, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	permitted, done := s.Denials.Permitted(limited, To(subject))
	sequence, err := send(permitted)
	if err = done(err); err != nil {
		return 0, s.full(subject, s.ExplainUnstored(ctx, subject, s.Routed(ctx, subject, err)))
	}

	return sequence, nil
}

// publish sends a message until it is acknowledged or ctx ends. The stream may store it several times.
func (s *Store) publish(ctx context.Context, m *nats.Msg, opts []jetstream.PublishOpt) (uint64, error) {
	ack, err := repeat(ctx, s.Connection, writeWaits(), func(ctx context.Context, _ func()) (*jetstream.PubAck, error) {
		again := *m // the client changes its headers
		again.Header = maps.Clone(m.Header)
		return s.JetStream().PublishMsg(ctx, &again, opts...)
	})
	if err != nil {
		return 0, err
	}

	return ack.Sequence, nil
}

// streamOfOperators returns the stream of a key that operators write, or "". Each value in it is a
// revision.
func (s *Store) streamOfOperators(subject string) string {
	for _, bucket := range []string{s.Names.Manifests, s.Names.Control} {
		if strings.HasPrefix(subject, KVSubject(bucket, "")) {
			return KVStream(bucket)
		}
	}

	return ""
}

// onceTries limits how often a value is sent because other users write the same key.
const onceTries = 5

// publishOnce stores a value of an operator once, although it may send the message several times. The
// server refuses a second copy because the expected sequence of the key has changed. If it refuses a
// copy, the newest value of the key shows whether the first copy was stored.
func (s *Store) publishOnce(ctx context.Context, stream string, m *nats.Msg, opts []jetstream.PublishOpt) (uint64, error) {
	id := nuid.Next()
	m.Header.Set(nats.MsgIdHdr, id)
	isExpected := len(opts) > 0
	for try := 1; ; try++ {
		if !isExpected {
			newest, err := s.newest(ctx, m.Subject)
			if err != nil {
				return 0, err
			}
			opts = []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(newest)}
		}
		sequence, err := s.publish(ctx, m, opts)
		if !IsReplaced(err) {
			return sequence, err
		}
		if current, failed := s.CurrentMessage(ctx, stream, m.Subject); failed == nil && current.Header.Get(nats.MsgIdHdr) == id {
			return current.Sequence, nil
		}
		if isExpected || try == onceTries {
			return 0, err
		}
	}
}

// Newest returns the sequence of the newest message of a subject, according to the leader of its
// stream, or 0 if there is none. A lagging replica would return an older message. The user needs
// permission to publish to the subject. Newest stores nothing. The error wraps model.ErrNotPermitted.
func (s *Store) Newest(ctx context.Context, subject string) (uint64, error) {
	return s.whenReady(ctx, subject, func(ctx context.Context) (uint64, error) { return s.newest(ctx, subject) })
}

func (s *Store) newest(ctx context.Context, subject string) (uint64, error) {
	for again := 0; ; again++ {
		// The server refuses this sequence, which no message has, and returns the newest one.
		_, err := s.publish(ctx, NewMsg(subject, nil), []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(math.MaxInt64)})
		if !IsReplaced(err) {
			return 0, fmt.Errorf("newest message of %s: %w", subject, cmp.Or(err, errNotCompared))
		}
		var newest uint64
		refused := (*jetstream.APIError)(nil)
		errors.As(err, &refused)
		if _, other := fmt.Sscanf(refused.Description, "wrong last sequence: %d", &newest); other == nil {
			return newest, nil
		}
		// Another user is writing the key.
		if again == LagTries {
			return 0, fmt.Errorf("newest message of %s: %w", subject, err)
		}
		if err := Pause(ctx, LagWait(again)); err != nil {
			return 0, err
		}
	}
}

// errNotCompared reports that the server ignored the expected sequence.
var errNotCompared = errors.New("the server takes no account of the expected sequence")

// IsReplaced reports whether Publish failed because the newest message of the subject is not the
// expected one. A replicated stream has a separate error code for a concurrent write.
func IsReplaced(err error) bool {
	var refused *jetstream.APIError

	return errors.As(err, &refused) && (refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// full wraps err with ErrFull and the remedy if a stream of operators has reached its size limit.
func (s *Store) full(subject string, err error) error {
	api := (*jetstream.APIError)(nil)
	if !errors.As(err, &api) || api.ErrorCode != storeFailed || !strings.Contains(api.Description, "maximum bytes") {
		return err
	}
	stream, flag := KVStream(s.Names.Manifests), "manifest"
	switch {
	case strings.HasPrefix(subject, s.Names.Prefix+".command."):
		stream, flag = s.Names.Commands, "command"
	case strings.HasPrefix(subject, KVSubject(s.Names.Control, "")):
		stream, flag = KVStream(s.Names.Control), "control"
	case !strings.HasPrefix(subject, KVSubject(s.Names.Manifests, "")):
		return err
	}

	return fmt.Errorf("%s is %w (an administrator raises its bound, %s --%s-size SIZE, or removes what fills it, nats stream purge %s --subject SUBJECT)", stream, ErrFull, s.Names.Run("fleet init"), flag, stream)
}

// Ready returns why writes are impossible now, or nil.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.Away(); err != nil {
		return err
	}

	return s.bindAll(ctx)
}

// ErrNoRoom reports that the server or the account lacks storage, or allows no further stream.
var ErrNoRoom = errors.New("no room in JetStream")

func isWithoutRoom(err error) bool {
	const (
		accountExceeded       = 10002
		insufficientResources = 10023
		memoryExceeded        = 10028
		storageExceeded       = 10047
	)
	var refused jetstream.JetStreamError

	return errors.As(err, &refused) && refused.APIError() != nil &&
		slices.Contains([]jetstream.ErrorCode{accountExceeded, insufficientResources, memoryExceeded, storageExceeded}, refused.APIError().ErrorCode)
}

// ExplainUnstored adds the server of the stream to the error of a message that was not stored. It
// wraps ErrNoRoom if the server lacks storage.
func (s *Store) ExplainUnstored(ctx context.Context, subject string, err error) error {
	isRefused := isWithoutRoom(err)
	if ctx.Err() != nil || !isRefused && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, repeatAfter)
	defer cancel()
	stream, leader := s.leaderOf(ctx, subject)
	switch {
	case isRefused:
		return fmt.Errorf("%w: %w: free disk space or raise the limit (max_file_store) of the server %s, and check its /healthz", ErrNoRoom, err, cmp.Or(leader, s.Conn.ConnectedServerName()))
	case leader == "":
		return s.unanswered(err)
	default:
		return fmt.Errorf("%w: %s does not store messages: free disk space, check /healthz of its server %s, and restart the server if it still refuses writes", err, stream, leader)
	}
}

// leaderOf returns the stream with a subject and the server that leads it. leader is "" if no leader
// answers.
func (s *Store) leaderOf(ctx context.Context, subject string) (stream, leader string) {
	found, err := s.Infos(ctx, subject)
	if err != nil {
		return "", ""
	}
	for name, info := range found {
		stream = name
		if info != nil {
			leader = s.leader(info)
		}
	}

	return stream, leader
}

// Sizes holds the size limits of messages: of each stream of the fleet, as last seen, and of the
// server.
type Sizes struct {
	nc *nats.Conn
	// streams maps streams to their limits.
	streams atomic.Pointer[map[string]int64]
	// stale reports that a stream has another limit than recorded.
	stale atomic.Bool
}

func (z *Sizes) note(found Infos) {
	streams := map[string]int64{}
	for name, info := range found {
		if info != nil {
			streams[name] = int64(info.Config.MaxMsgSize)
		}
	}
	z.streams.Store(&streams)
}

func (z *Sizes) of(stream string) int64 {
	if streams := z.streams.Load(); streams != nil {
		return (*streams)[stream]
	}

	return 0
}

// Max returns the maximum size of a value in a stream in bytes, without the room for headers. It is
// the lower limit of the server and the stream. fallback replaces an unknown limit of the stream.
func (z *Sizes) Max(stream string, fallback int64) int64 {
	most := z.of(stream)
	if most <= 0 {
		most = fallback
	}
	if server := z.nc.MaxPayload(); server > 0 {
		most = min(most, server)
	}

	return max(most-headerRoom, 0)
}

// Check returns an error that wraps model.ErrTooLarge if a value exceeds the known limit of a stream.
// The limit is then read again before the next write.
func (z *Sizes) Check(stream, what string, value []byte) error {
	if most := z.of(stream) - headerRoom; most > 0 && int64(len(value)) > most {
		z.Refresh()
		return fmt.Errorf("%w: %s has %d bytes, the stream %s accepts %d", model.ErrTooLarge, what, len(value), stream, most)
	}

	return nil
}

// CheckMessage returns an error that wraps model.ErrTooLarge if a value exceeds the limit of the
// server.
func (z *Sizes) CheckMessage(what string, value []byte) error {
	if most := z.nc.MaxPayload() - headerRoom; most > 0 && int64(len(value)) > most {
		return fmt.Errorf("%w: %s has %d bytes, the server takes %d", model.ErrTooLarge, what, len(value), most)
	}

	return nil
}

// Refresh makes the next write read the limits again.
func (z *Sizes) Refresh() { z.stale.Store(true) }
