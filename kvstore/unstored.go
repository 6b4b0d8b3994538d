package kvstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrNoRoom reports that the server or the account lacks storage, or allows no further stream.
var ErrNoRoom = errors.New("no room in JetStream")

// isWithoutRoom reports whether the server or the account has no room for a message.
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
		return fmt.Errorf("%w: %w: free disk space or raise the limit (max_file_store) of the server %s, and check its /healthz", ErrNoRoom, err, cmp.Or(leader, s.nc.ConnectedServerName()))
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
