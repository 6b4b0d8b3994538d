package kvstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// Content reads the data that manifests reference: keys of any bucket, objects of any store, and
// bundles. It also stores bundles.
type Content struct{ store *Store }

// NewContent returns the content of the fleet of s.
func NewContent(s *Store) Content { return Content{s} }

// KVGet reads a key of any key-value bucket. The error wraps model.ErrNotFound if the
// bucket has no such key, and model.ErrInvalidName for an invalid bucket or key name.
func (s Content) KVGet(ctx context.Context, bucket, key string) ([]byte, error) {
	if !model.IsToken(bucket) {
		return nil, fmt.Errorf("%w: bucket %q, use letters, digits, - and _ only", model.ErrInvalidName, bucket)
	}
	if err := checkKVKey(key); err != nil {
		return nil, err
	}
	m, err := s.store.Value(ctx, KVStream(bucket), KVSubject(bucket, key))
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("bucket %s: no such key-value bucket, or one without direct get (see nats kv ls)", bucket)
	case err != nil:
		return nil, fmt.Errorf("key %s of %s: %w", key, bucket, err)
	}

	return m.Data, nil
}

// checkKVKey returns an error unless NATS clients allow the key. It rejects wildcards, which would
// read another key.
func checkKVKey(key string) error {
	for _, token := range strings.Split(key, ".") {
		if !model.IsToken(strings.NewReplacer("/", "", "=", "").Replace(token)) {
			return fmt.Errorf("%w: key %q, use letters, digits, -, _, / and = in parts joined by dots", model.ErrInvalidName, key)
		}
	}

	return nil
}
