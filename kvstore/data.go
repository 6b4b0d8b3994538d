package kvstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
)

// PutData stores hierarchical data, for kv://, and gives its revision. A key is
// tokens joined by dots. The error wraps ErrInvalidName or ErrTooLarge.
func (s *Store) PutData(ctx context.Context, key string, value []byte) (uint64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	if err := s.checkSize("data "+key, value); err != nil {
		return 0, err
	}
	ack, err := s.js.Publish(ctx, kvSubject(s.names.Data(), key), value)
	if err != nil {
		return 0, fmt.Errorf("put data %s: %w", key, err)
	}

	return ack.Sequence, nil
}

// GetData reads hierarchical data; the error wraps ErrNotFound.
func (s *Store) GetData(ctx context.Context, key string) ([]byte, error) {
	return s.KVGet(ctx, s.names.Data(), key)
}

// DeleteData removes hierarchical data.
func (s *Store) DeleteData(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	m := newMsg(kvSubject(s.names.Data(), key), nil)
	m.Header.Set("KV-Operation", "DEL")
	if _, err := s.js.PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("delete data %s: %w", key, err)
	}

	return nil
}

// KVGet reads a key of any key-value bucket; the error wraps ErrNotFound when
// the bucket has no such key, and ErrInvalidName when it cannot be one.
func (s *Store) KVGet(ctx context.Context, bucket, key string) ([]byte, error) {
	if !ValidToken(bucket) {
		return nil, fmt.Errorf("%w: bucket %q, use letters, digits, - and _ only", ErrInvalidName, bucket)
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	m, err := s.last(ctx, kvStream(bucket), kvSubject(bucket, key))
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("bucket %s: no such key-value bucket, or one without direct get: %w", bucket, err)
	case err != nil:
		return nil, fmt.Errorf("key %s of %s: %w", key, bucket, err)
	case m.deleted():
		return nil, fmt.Errorf("key %s of %s: %w", key, bucket, ErrNotFound)
	}

	return m.data, nil
}

// checkKey tells whether a key can be one: what NATS clients allow, without
// wildcards, which would read another key than the one named.
func checkKey(key string) error {
	for _, token := range strings.Split(key, ".") {
		if !ValidToken(strings.NewReplacer("/", "", "=", "").Replace(token)) {
			return fmt.Errorf("%w: key %q, use letters, digits, -, _, / and = in parts joined by dots", ErrInvalidName, key)
		}
	}

	return nil
}
