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

// errBadIndex is an index that somebody else wrote something into. What it lists
// is then found in the bucket itself.
var errBadIndex = errors.New("unreadable index")

// index is the list of names of a family, as stored under its reserved key. An
// entry is stored with revision 0 when it was put together with the index
// itself, because only the server knows the number then: it is the one right
// before the index, which decodeIndex fills in.
type index struct {
	names    map[string]model.IndexEntry
	revision uint64
}

// decodeIndex reads the index that is stored at a revision. A family that never
// had one, or whose index was deleted, has an empty one.
func decodeIndex(m message) (index, error) {
	ix := index{names: map[string]model.IndexEntry{}, revision: m.sequence}
	if m.deleted() {
		return ix, nil
	}
	var doc model.Index
	if err := json.Unmarshal(m.data, &doc); err != nil {
		return ix, fmt.Errorf("%w at revision %d: %w", errBadIndex, m.sequence, err)
	}
	if doc.Protocol != model.ProtocolIndex {
		return ix, fmt.Errorf("%w at revision %d: protocol is %q, must be %q", errBadIndex, m.sequence, doc.Protocol, model.ProtocolIndex)
	}
	for name, entry := range doc.Names {
		if model.CheckName(name) != nil {
			continue
		}
		if entry.Revision == 0 {
			entry.Revision = m.sequence - 1
		}
		ix.names[name] = entry
	}

	return ix, nil
}

// message gives the index as it is to be stored, on condition that nobody
// changed it since it was read.
func (ix index) message(subject string) (*nats.Msg, error) {
	data, err := json.Marshal(model.Index{Protocol: model.ProtocolIndex, Names: ix.names})
	if err != nil {
		return nil, err
	}
	m := newMsg(subject, data)
	m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(ix.revision, 10))

	return m, nil
}

// readIndex reads the index of a family. The error wraps errBadIndex when it
// cannot be understood; then the index is empty and has its revision.
func (s *Store) readIndex(ctx context.Context, family string) (index, error) {
	bucket := s.names.Manifests()
	m, err := s.last(ctx, kvStream(bucket), kvSubject(bucket, model.Key(family, IndexName)))
	if errors.Is(err, model.ErrNotFound) {
		return index{names: map[string]model.IndexEntry{}}, nil
	}
	if err != nil {
		return index{}, err
	}
	ix, err := decodeIndex(m)
	if err != nil {
		return ix, fmt.Errorf("family %s: %w", family, err)
	}

	return ix, nil
}

// rebuildIndex lists in an index what the bucket has of its family.
func (s *Store) rebuildIndex(ctx context.Context, family string, ix index) (index, error) {
	listed, err := s.List(ctx, family)
	if err != nil {
		return index{}, err
	}
	for _, l := range listed {
		ix.names[l.Name] = model.IndexEntry{Revision: l.Revision, Digest: l.Digest}
	}

	return ix, nil
}

// contentDigest gives the digest of what runs of a value: of the manifest or the
// bundle in an assignment document, as operators put it, else of the value itself.
func contentDigest(value []byte) string {
	var a model.Assignment
	switch {
	case json.Unmarshal(value, &a) != nil || a.Protocol != model.ProtocolAssignment:
		return model.DigestOf(value)
	case a.Bundle != "":
		return a.Bundle
	default:
		return model.DigestOf([]byte(a.Manifest))
	}
}
