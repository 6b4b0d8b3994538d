package kvstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go"
)

// ErrNobody is a request that no node listens to: none is connected, or none is
// of that name or group.
var ErrNobody = errors.New("no node listens")

// Reply is one answer of one node.
type Reply struct {
	Node string
	Data []byte
	// Problem says why the node has no answer; then Data is empty.
	Problem string
}

// Ask asks the nodes that listen to a subject, see Names.Request, and gives each
// answer as it comes, several of one node where it sends several, until the
// context ends; the caller stops when it has enough. An error is the last thing
// given: it wraps ErrNobody or ErrTooLarge, or is of the connection. That the
// context ended is none.
func (s *Store) Ask(ctx context.Context, subject string, request []byte) iter.Seq2[Reply, error] {
	return func(yield func(Reply, error) bool) {
		if err := s.checkSize("request", request); err != nil {
			yield(Reply{}, err)
			return
		}
		inbox := s.nc.NewInbox()
		sub, err := s.nc.SubscribeSync(inbox)
		if err == nil {
			defer func() { _ = sub.Unsubscribe() }()
			err = s.nc.PublishRequest(subject, inbox, request)
		}
		for err == nil {
			var m *nats.Msg
			if m, err = sub.NextMsgWithContext(ctx); err == nil && !yield(readReply(m)) {
				return
			}
			if errors.Is(err, nats.ErrNoResponders) {
				err = ErrNobody
			}
		}
		if ctx.Err() == nil {
			yield(Reply{}, fmt.Errorf("ask %s: %w", subject, err))
		}
	}
}

func readReply(m *nats.Msg) (Reply, error) {
	return Reply{Node: m.Header.Get(NodeHeader), Data: m.Data, Problem: m.Header.Get(ErrorHeader)}, nil
}
