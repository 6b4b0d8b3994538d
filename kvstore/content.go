package kvstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

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

// PutBundle stores a bundle under the digest of its bytes, sha256-<hex>, and returns the
// digest. It stores nothing if the bundle exists. It reads r from the beginning.
func (s Content) PutBundle(ctx context.Context, r io.ReadSeeker) (string, error) {
	digest, err := digestOf(r)
	if err != nil {
		return "", fmt.Errorf("read bundle: %w", err)
	}
	_, err = s.objectInfo(ctx, s.store.Names.Bundles, digest)
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
	name := s.store.Names.Bundles
	api := s.store.API.InUse()
	ctx, done := s.store.Denials.Permitted(ctx, api.About(ObjectStream(name)))
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
	info, err := s.objectInfo(ctx, s.store.Names.Bundles, name)
	switch {
	case errors.Is(err, model.ErrNotFound):
		return nil, fmt.Errorf("bundle %s: %w in %s (%s)", digest, model.ErrNotFound, s.store.Names.Bundles, hint)
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

const (
	// chunkBatch is the number of chunks in one read.
	chunkBatch = 16
	// leastRate is the lowest accepted rate, in bytes per second, after the reader waited for
	// objectGrace. Without it, a slow server could block the reader forever.
	leastRate   = 256 << 10
	objectGrace = 30 * time.Second
)

var (
	// ErrDamaged reports that the bytes of an object do not match its metadata.
	ErrDamaged = errors.New("damaged")
	// ErrSlow reports that the server sends an object too slowly.
	ErrSlow = errors.New("too slow")
)

// Object opens an object of any object store, without a consumer. The error wraps
// model.ErrNotFound if the object does not exist. Read returns an error that wraps
// ErrDamaged if the size, the chunks or the digest do not match the metadata, and ErrSlow
// if the server sends too slowly. Read also fails when ctx ends.
func (s Content) Object(ctx context.Context, bucket, name string) (io.ReadCloser, error) {
	info, err := s.objectInfo(ctx, bucket, name)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("no object store %s, or one without direct get (see nats object ls)", bucket)
	case err != nil:
		return nil, fmt.Errorf("object %s of %s: %w", name, bucket, err)
	}

	return s.open(ctx, info), nil
}

// open returns a reader that fetches an object chunk by chunk.
func (s Content) open(ctx context.Context, info *jetstream.ObjectInfo) io.ReadCloser {
	parts := func(func(Message, error) bool) {}
	if info.Chunks > 0 {
		parts = scanDirect(ctx, s.store, ObjectStream(info.Bucket), "$O."+info.Bucket+".C."+info.NUID, chunkBatch)
	}

	return newObjectReader(info, parts)
}

func newObjectReader(info *jetstream.ObjectInfo, parts iter.Seq2[Message, error]) *objectReader {
	next, stop := iter.Pull2(parts)

	return &objectReader{info: info, next: next, stop: stop, sum: sha256.New()}
}

// objectReader reads an object up to the size in its metadata and checks the digest at
// the end.
type objectReader struct {
	info *jetstream.ObjectInfo
	next func() (Message, error, bool)
	stop func()
	part []byte
	// read counts bytes and chunks counts messages. waited is the time spent on fetching.
	read   uint64
	chunks uint32
	waited time.Duration
	sum    hash.Hash
}

// Read implements io.Reader. See Content.Object for its errors.
func (r *objectReader) Read(p []byte) (int, error) {
	for len(r.part) == 0 {
		err := r.fetch()
		switch {
		case err == io.EOF:
			return 0, err
		case err != nil:
			return 0, fmt.Errorf("object %s of %s: %w", r.info.Name, r.info.Bucket, err)
		}
	}
	n := copy(p, r.part)
	r.part = r.part[n:]

	return n, nil
}

// fetch waits for the next chunk. It returns io.EOF after the last chunk of an
// undamaged object.
func (r *objectReader) fetch() error {
	begun := time.Now()
	m, err, more := r.next()
	r.waited += time.Since(begun)
	switch {
	case !more:
		return cmp.Or(r.check(), io.EOF)
	case err != nil:
		return err
	case m.Forged:
		return m.Refusal()
	case r.chunks == r.info.Chunks:
		return fmt.Errorf("%w: it has more than the %d chunks that it says", ErrDamaged, r.info.Chunks)
	case uint64(len(m.Data)) > r.info.Size-r.read:
		return fmt.Errorf("%w: it has more than the %d bytes that it says", ErrDamaged, r.info.Size)
	}
	r.part = m.Data
	r.chunks++
	r.read += uint64(len(m.Data))
	r.sum.Write(m.Data)
	if r.waited > objectGrace+time.Duration(r.read/leastRate)*time.Second {
		return fmt.Errorf("%w: %d bytes in %s", ErrSlow, r.read, r.waited.Round(time.Second))
	}

	return nil
}

// Close stops the fetch. It always returns nil.
func (r *objectReader) Close() error {
	r.stop()

	return nil
}

func (r *objectReader) check() error {
	want, err := jetstream.DecodeObjectDigest(r.info.Digest)
	if err != nil {
		return fmt.Errorf("%w: digest: %w", ErrDamaged, err)
	}
	if r.read != r.info.Size || !bytes.Equal(want, r.sum.Sum(nil)) {
		return fmt.Errorf("%w: %d of %d bytes, or other bytes than were stored", ErrDamaged, r.read, r.info.Size)
	}

	return nil
}

func (s Content) objectInfo(ctx context.Context, bucket, name string) (*jetstream.ObjectInfo, error) {
	m, err := s.store.Value(ctx, ObjectStream(bucket), "$O."+bucket+".M."+base64.URLEncoding.EncodeToString([]byte(name)))
	if err != nil {
		return nil, err
	}
	var info jetstream.ObjectInfo
	if err := json.Unmarshal(m.Data, &info); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	switch {
	case info.Deleted:
		return nil, model.ErrNotFound
	case info.Opts != nil && info.Opts.Link != nil:
		return nil, errors.New("it is a link: name the object it points to")
	}
	info.Bucket = bucket

	return &info, nil
}

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

func (s Content) removePreviews(ctx context.Context, match func(*jetstream.ObjectInfo) bool) error {
	name := s.store.Names.Bundles
	ctx, done := s.store.Denials.Permitted(ctx, s.store.API.InUse().About(ObjectStream(name)))
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
