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

// ErrDiffers is a bucket or stream that muster can work with although a setting
// is not as it should be. The remedy is that of ErrNotProvisioned.
var ErrDiffers = errors.New("NATS is not set up as muster sets it up")

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
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(requestTimeout))
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
func (s *Store) away() error {
	switch {
	case s.nc.IsClosed():
		return nats.ErrConnectionClosed
	case !s.nc.IsConnected():
		return nats.ErrDisconnected
	default:
		return nil
	}
}

// Check tells whether every bucket and stream is there and configured as muster
// needs it. The error wraps ErrNotProvisioned when something is missing or not
// usable, and ErrDiffers when all is usable, and names all that is not as it
// should be. Check needs no more than a node may ask.
func (s *Store) Check(ctx context.Context) error {
	var wrong []error
	kind := ErrDiffers
	for _, want := range desired(s.names, Options{}) {
		info, err := s.streamInfo(ctx, want.Name, want.Subjects[0])
		if errors.Is(err, model.ErrNotFound) {
			wrong = append(wrong, fmt.Errorf("%s is missing", want.Name))
			if want.Name != s.names.Registrations() { // a fleet can do without, as long as nothing registers
				kind = ErrNotProvisioned
			}
			continue
		}
		if err != nil {
			return err
		}
		for _, c := range compare(info.Config, want) {
			wrong = append(wrong, fmt.Errorf("%s: %s", want.Name, c))
			if !c.optional {
				kind = ErrNotProvisioned
			}
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%w, run `muster fleet init`: %w", kind, errors.Join(wrong...))
	}

	return nil
}

// streamInfo finds a stream that keeps a subject through the list of streams:
// unlike the info of one stream that request cannot be made to show the keys in
// it, so a node may be allowed to make it. The error wraps model.ErrNotFound when
// there is no such stream.
func (s *Store) streamInfo(ctx context.Context, stream, subject string) (*api.StreamInfo, error) {
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
	reply, err := s.request(ctx, api.JSApiStreamList, body)
	if err != nil {
		return nil, err
	}
	var resp api.JSApiStreamListResponse
	if err := json.Unmarshal(reply.Data, &resp); err != nil {
		return nil, fmt.Errorf("decode list of streams: %w", err)
	}

	return &resp, resp.ToError()
}
