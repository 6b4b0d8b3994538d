package kvstore

import (
	"context"

	"github.com/musterfleet/muster/model"
)

// IndexOf gives a test what the index of a family lists.
func IndexOf(ctx context.Context, s *Store, family string) (map[string]model.IndexEntry, error) {
	ix, err := s.readIndex(ctx, family)

	return ix.names, err
}
