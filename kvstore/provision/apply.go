package provision

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/kvstore"
)

// ErrShrink is a provisioning that would lose data or cannot be done; nothing
// was changed.
var ErrShrink = errors.New("refused to change")

// ErrNoRoom is a bucket or stream that the server or the account has no room
// for: too little storage, or too few streams.
var ErrNoRoom = errors.New("no room in JetStream")

// Difference is what must be done to one bucket or stream.
type Difference struct {
	// Stream is the name of the stream behind it.
	Stream string `json:"stream"`
	// Create says that it is missing.
	Create bool `json:"create,omitempty"`
	// Changes are the settings of an existing one that differ.
	Changes []Change `json:"changes,omitempty"`

	config api.StreamConfig
}

// String says in one line what is done.
func (d Difference) String() string {
	if d.Create {
		return "create " + d.Stream
	}
	lines := make([]string, len(d.Changes))
	for i, c := range d.Changes {
		lines[i] = c.String()
	}

	return "change " + d.Stream + ": " + strings.Join(lines, "; ")
}

// Plan tells what Apply would do, and changes nothing. No difference means that
// all is as it must be.
func (s Provisioner) Plan(ctx context.Context, o Options) ([]Difference, error) {
	created := desired(s.store.Names(), o.withDefaults())
	var differences []Difference
	for i, want := range desired(s.store.Names(), o) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		have, err := s.configuration(ctx, want.Name)
		switch {
		case jsm.IsNatsError(err, streamNotFound):
			differences = append(differences, Difference{Stream: want.Name, Create: true, config: created[i]})
		case err != nil:
			return nil, fmt.Errorf("provision %s: %w", want.Name, err)
		default:
			if changes := compare(have, want); len(changes) > 0 {
				differences = append(differences, Difference{Stream: want.Name, Changes: changes, config: merge(have, want)})
			}
		}
	}

	return differences, nil
}

// configuration asks how a stream is configured.
func (s Provisioner) configuration(ctx context.Context, stream string) (api.StreamConfig, error) {
	reply, err := s.store.Request(ctx, "$JS.API.STREAM.INFO."+stream, nil)
	if err != nil {
		return api.StreamConfig{}, err
	}
	var resp api.JSApiStreamInfoResponse
	if err := json.Unmarshal(reply.Data, &resp); err != nil {
		return api.StreamConfig{}, err
	}
	if err := resp.ToError(); err != nil {
		return api.StreamConfig{}, err
	}

	return resp.Config, nil
}

// The codes of the server's errors.
const (
	streamNotFound = 10059
	resourcesShort = 10023
	streamsOver    = 10027
	storageShort   = 10047
	noLimits       = 10120
	bytesOver      = 10122
)

// Apply creates what is missing and changes what differs, and gives what it
// did. Where a change is refused nothing is done and the error, which wraps
// ErrShrink, names each; done again it does nothing. The error of a server
// without room wraps ErrNoRoom.
func (s Provisioner) Apply(ctx context.Context, o Options) ([]Difference, error) {
	differences, err := s.Plan(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := refusals(differences); err != nil {
		return nil, err
	}
	m, err := jsm.New(s.store.Conn(), jsm.WithTimeout(kvstore.RequestTimeout))
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	for i, d := range differences {
		if err := ctx.Err(); err != nil {
			return differences[:i], err
		}
		if err := provision(m, d); err != nil {
			return differences[:i], fmt.Errorf("%s: %w", d, err)
		}
	}

	return differences, nil
}

// refusals gives all that is refused as one error.
func refusals(differences []Difference) error {
	var refused []error
	for _, d := range differences {
		for _, c := range d.Changes {
			if c.Refused != "" {
				refused = append(refused, fmt.Errorf("%s: %s", d.Stream, c))
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}

	return fmt.Errorf("%w: %w", ErrShrink, errors.Join(refused...))
}

func provision(m *jsm.Manager, d Difference) error {
	if d.Create {
		_, err := m.NewStreamFromDefault(d.Stream, d.config)
		return room(err)
	}
	stream, err := m.LoadStream(d.Stream)
	if err != nil {
		return err
	}

	return room(stream.UpdateConfiguration(d.config))
}

// room finds out the errors that mean that there is no room.
func room(err error) error {
	for _, code := range []uint16{resourcesShort, storageShort, streamsOver, noLimits, bytesOver} {
		if jsm.IsNatsError(err, code) {
			return fmt.Errorf("%w: %w", ErrNoRoom, err)
		}
	}

	return err
}

// merge gives what a stream becomes: what muster does not care for stays as its
// administrator set it.
func merge(have, want api.StreamConfig) api.StreamConfig {
	for _, s := range want.Subjects {
		if !slices.Contains(have.Subjects, s) {
			have.Subjects = append(have.Subjects, s)
		}
	}
	have.AllowDirect = have.AllowDirect || want.AllowDirect
	have.RollupAllowed = want.RollupAllowed
	have.DenyDelete = have.DenyDelete || want.DenyDelete
	have.AllowAtomicPublish = have.AllowAtomicPublish || want.AllowAtomicPublish
	have.AllowMsgTTL = have.AllowMsgTTL || want.AllowMsgTTL
	have.Discard = want.Discard
	have.Duplicates = max(have.Duplicates, want.Duplicates)
	if want.RePublish != nil {
		have.RePublish = want.RePublish
	}
	if have.MaxMsgsPer > 0 {
		have.MaxMsgsPer = max(have.MaxMsgsPer, want.MaxMsgsPer)
	}
	have.Replicas = cmp.Or(want.Replicas, have.Replicas)
	have.MaxAge = max(cmp.Or(want.MaxAge, have.MaxAge), 0)
	have.MaxBytes = cmp.Or(want.MaxBytes, have.MaxBytes)
	have.MaxMsgSize = -1
	if want.Discard == api.DiscardNew {
		have.MaxMsgs = -1
	}
	if isBucket(want) {
		have.MaxBytes, have.MaxAge = -1, 0
	}
	if !want.RollupAllowed {
		have.SubjectDeleteMarkerTTL = 0
	}

	return have
}
