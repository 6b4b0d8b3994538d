package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// ErrNotProvisioned is a bucket or stream that is missing or not configured as
// muster needs it. The remedy is `muster fleet init`, which an operator runs.
var ErrNotProvisioned = errors.New("NATS is not provisioned for muster")

// Store is one fleet's data on a NATS connection. It creates nothing. Its
// methods may be called from several goroutines. Methods return
// context errors and those of nats.go as they are, wrapped, and ErrNotPermitted
// where the server says so.
type Store struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	names Names

	denials denials
}

// New makes the store without asking the server anything, so that a node can
// start while NATS is away; Check does what Bind does beyond it.
func New(nc *nats.Conn, prefix string) (*Store, error) {
	names, err := NewNames(prefix)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(RequestTimeout))
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}

	s := &Store{nc: nc, js: js, names: names}
	s.denials.listen(nc)

	return s, nil
}

// Names gives the names of the fleet.
func (s *Store) Names() Names { return s.names }

// away says why the server cannot be asked now, nil when it can. A client that was
// never connected says something else of a message with headers.
func (s *Store) Away() error {
	switch {
	case s.nc.IsClosed():
		return nats.ErrConnectionClosed
	case !s.nc.IsConnected():
		return nats.ErrDisconnected
	default:
		return nil
	}
}

// streamInfo finds a stream that keeps a subject through the list of streams:
// unlike the info of one stream that request cannot be made to show the keys in
// it, so a node may be allowed to make it. The error wraps model.ErrNotFound when
// there is no such stream.
func (s *Store) StreamInfo(ctx context.Context, stream, subject string) (*api.StreamInfo, error) {
	offset := 0
	for {
		page, err := s.streamPage(ctx, subject, offset)
		if err != nil {
			return nil, fmt.Errorf("look for stream %s: %w", stream, err)
		}
		for _, info := range page.Streams {
			if info.Config.Name == stream {
				return info, nil
			}
		}
		offset += len(page.Streams)
		switch {
		case slices.Contains(page.Missing, stream):
			return nil, fmt.Errorf("look for stream %s: its servers do not answer", stream)
		case len(page.Streams) == 0 || offset >= page.Total:
			return nil, fmt.Errorf("stream %s: %w", stream, model.ErrNotFound)
		}
	}
}

// streamPage asks for the streams that keep a subject.
func (s *Store) streamPage(ctx context.Context, subject string, offset int) (*api.JSApiStreamListResponse, error) {
	req := api.JSApiStreamListRequest{JSApiIterableRequest: api.JSApiIterableRequest{Offset: offset}, Subject: subject}
	body, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	reply, err := s.Request(ctx, api.JSApiStreamList, body)
	if err != nil {
		return nil, err
	}
	var resp api.JSApiStreamListResponse
	if err := json.Unmarshal(reply.Data, &resp); err != nil {
		return nil, fmt.Errorf("decode list of streams: %w", err)
	}

	return &resp, resp.ToError()
}

// Conn gives the connection.
func (s *Store) Conn() *nats.Conn { return s.nc }

// JetStream gives JetStream on the connection.
func (s *Store) JetStream() jetstream.JetStream { return s.js }
