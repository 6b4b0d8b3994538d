package kvstore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// PutBundle stores a bundle under the digest of its bytes, sha256-<hex>, and returns the
// digest. It stores nothing if the bundle exists. It reads r from the beginning.
func (s Content) PutBundle(ctx context.Context, r io.ReadSeeker) (string, error) {
	digest, err := digestOf(r)
	if err != nil {
		return "", fmt.Errorf("read bundle: %w", err)
	}
	_, err = s.objectInfo(ctx, s.store.Names().Bundles(), digest)
	if err == nil {
		return digest, nil
	}
	if !errors.Is(err, model.ErrNotFound) {
		return "", fmt.Errorf("bundle %s: %w", digest, err)
	}
	if err := s.putBundle(ctx, digest, r); err != nil {
		return "", fmt.Errorf("put bundle %s: %w", digest, err)
	}

	return digest, nil
}

func (s Content) putBundle(ctx context.Context, digest string, r io.Reader) error {
	name := s.store.Names().Bundles()
	api := s.store.Places().InUse()
	ctx, done := s.store.Denials().Permitted(ctx, api.About(ObjectStream(name)))
	bundles, err := s.store.JetStream().ObjectStore(ctx, name)
	if err == nil {
		_, err = bundles.Put(ctx, jetstream.ObjectMeta{Name: digest}, r)
	}

	return done(err)
}

// GetBundle opens a bundle by its digest. The error wraps model.ErrInvalidName for an
// invalid digest, and model.ErrNotFound if the bundle does not exist. Read fails as
// described at Object, and with ErrDamaged if the bytes do not match the digest.
func (s Content) GetBundle(ctx context.Context, digest string) (io.ReadCloser, error) {
	return s.getBundle(ctx, digest, digest, "push its directory again, muster fleet push stores it")
}

// getBundle opens the bundle stored as name and checks it against digest. The error for a
// missing bundle includes hint.
func (s Content) getBundle(ctx context.Context, digest, name, hint string) (io.ReadCloser, error) {
	want, err := hex.DecodeString(strings.TrimPrefix(digest, model.DigestPrefix))
	if err != nil || len(want) != sha256.Size || !strings.HasPrefix(digest, model.DigestPrefix) {
		return nil, fmt.Errorf("%w: %q is no digest of a bundle: write sha256- and 64 hexadecimal digits", model.ErrInvalidName, digest)
	}
	info, err := s.objectInfo(ctx, s.store.Names().Bundles(), name)
	switch {
	case errors.Is(err, model.ErrNotFound):
		return nil, fmt.Errorf("bundle %s: %w in %s (%s)", digest, model.ErrNotFound, s.store.Names().Bundles(), hint)
	case err != nil:
		return nil, fmt.Errorf("bundle %s: %w", digest, err)
	}
	if info.Size > model.MaxBundle {
		return nil, fmt.Errorf("bundle %s: it says that it has %d bytes, a bundle has at most %d", digest, info.Size, model.MaxBundle)
	}
	// Another user may have stored other bytes under this name, so check the requested digest.
	info.Digest = "SHA-256=" + base64.URLEncoding.EncodeToString(want)

	return s.open(ctx, info), nil
}

// digestOf returns the digest of r and seeks back to the beginning.
func digestOf(r io.ReadSeeker) (string, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return "", err
	}
	_, err := r.Seek(0, io.SeekStart)

	return model.DigestFrom(sum), err
}
