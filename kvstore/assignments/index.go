package assignments

import (
	"context"
	"encoding/json"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// rebuildIndex lists in an index what the bucket has of its family.
func (s Bucket) rebuildIndex(ctx context.Context, family string, ix kvstore.Index) (kvstore.Index, error) {
	listed, err := s.List(ctx, family)
	if err != nil {
		return kvstore.Index{}, err
	}
	for _, l := range listed {
		ix.Names[l.Name] = model.IndexEntry{Revision: l.Revision, Digest: l.Digest}
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
