package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// ErrBadIndex is an index that another client overwrote. What it lists is then
// found in the bucket itself.
var ErrBadIndex = errors.New("unreadable index")

// Index is the list of names of a family, as stored under its reserved key. An
// entry that was put together with the index is stored with revision 0, because
// only the server knows its revision: it is the one right before the index, which
// decodeIndex fills in.
type Index struct {
	Names    map[string]model.IndexEntry
	Revision uint64
}

// decodeIndex reads the index that is stored at a revision. A family that never
// had one, or whose index was deleted, has an empty one.
func decodeIndex(m Message) (Index, error) {
	ix := Index{Names: map[string]model.IndexEntry{}, Revision: m.Sequence}
	if m.Deleted() {
		return ix, nil
	}
	var doc model.Index
	if err := json.Unmarshal(m.Data, &doc); err != nil {
		return ix, fmt.Errorf("%w at revision %d: %w", ErrBadIndex, m.Sequence, err)
	}
	if doc.Protocol != model.ProtocolIndex {
		return ix, fmt.Errorf("%w at revision %d: protocol is %q, must be %q", ErrBadIndex, m.Sequence, doc.Protocol, model.ProtocolIndex)
	}
	for name, entry := range doc.Names {
		if model.CheckName(name) != nil {
			continue
		}
		if entry.Revision == 0 {
			entry.Revision = m.Sequence - 1
		}
		ix.Names[name] = entry
	}

	return ix, nil
}

// Message returns the index for storing, on condition that nobody changed it
// since it was read.
func (ix Index) Message(subject string) (*nats.Msg, error) {
	data, err := json.Marshal(model.Index{Protocol: model.ProtocolIndex, Names: ix.Names})
	if err != nil {
		return nil, err
	}
	m := NewMsg(subject, data)
	m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(ix.Revision, 10))

	return m, nil
}

// ReadIndex reads the index of a family. The error wraps ErrBadIndex when it cannot
// be decoded; then the index is empty and has its revision.
func (s *Store) ReadIndex(ctx context.Context, family string) (Index, error) {
	bucket := s.names.Manifests()
	m, err := s.Last(ctx, KVStream(bucket), KVSubject(bucket, model.Key(family, IndexName)))
	if errors.Is(err, model.ErrNotFound) {
		return Index{Names: map[string]model.IndexEntry{}}, nil
	}
	if err != nil {
		return Index{}, err
	}
	ix, err := decodeIndex(m)
	if err != nil {
		return ix, fmt.Errorf("family %s: %w", family, err)
	}

	return ix, nil
}
