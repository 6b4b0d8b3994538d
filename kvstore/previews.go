package kvstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// previewPrefix is the name prefix of preview bundles.
const previewPrefix = "preview-"

// previewName returns the object name of a preview bundle. It differs from the digest, because an
// assignment may use the bundle with that name.
func previewName(id, digest string) string { return previewPrefix + id + "-" + digest }

// PutPreviewBundle stores the bundle of a preview and reads r from the beginning. It first removes
// preview bundles older than twice model.MaxPreview, which killed previews did not remove.
func (s Content) PutPreviewBundle(ctx context.Context, id, digest string, r io.ReadSeeker) error {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read bundle: %w", err)
	}
	if err := s.removePreviews(ctx, func(o *jetstream.ObjectInfo) bool { return time.Since(o.ModTime) > 2*model.MaxPreview }); err != nil {
		return fmt.Errorf("remove the bundles of earlier previews: %w", err)
	}
	if err := s.putBundle(ctx, previewName(id, digest), r); err != nil {
		return fmt.Errorf("put the bundle of the preview: %w", err)
	}

	return nil
}

// GetPreviewBundle opens the bundle of a preview. If it does not exist, it opens the assigned bundle with
// the same digest, because some users may request previews but not store bundles. See GetBundle for errors.
func (s Content) GetPreviewBundle(ctx context.Context, id, digest string) (io.ReadCloser, error) {
	r, err := s.getBundle(ctx, digest, previewName(id, digest), "its preview has ended")
	if errors.Is(err, model.ErrNotFound) {
		if assigned, other := s.GetBundle(ctx, digest); other == nil {
			return assigned, nil
		}
	}

	return r, err
}

// RemovePreviewBundle removes the bundle of a preview that has ended.
func (s Content) RemovePreviewBundle(ctx context.Context, id, digest string) error {
	name := previewName(id, digest)
	if err := s.removePreviews(ctx, func(o *jetstream.ObjectInfo) bool { return o.Name == name }); err != nil {
		return fmt.Errorf("remove the bundle of the preview, %s: %w", name, err)
	}

	return nil
}

// removePreviews removes the bundles of previews that match.
func (s Content) removePreviews(ctx context.Context, match func(*jetstream.ObjectInfo) bool) error {
	name := s.store.Names().Bundles()
	ctx, done := s.store.Denials().Permitted(ctx, s.store.Places().InUse().About(ObjectStream(name)))
	bundles, err := s.store.JetStream().ObjectStore(ctx, name)
	var all []*jetstream.ObjectInfo
	if err == nil {
		all, err = bundles.List(ctx)
	}
	if errors.Is(err, jetstream.ErrNoObjectsFound) {
		return done(nil)
	}
	for _, o := range all {
		if err == nil && strings.HasPrefix(o.Name, previewPrefix) && match(o) {
			err = bundles.Delete(ctx, o.Name)
		}
	}

	return done(err)
}
