package content

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/scan"
	"github.com/musterfleet/muster/model"
)

const (
	// chunkBatch is how many parts of an object are read at once.
	chunkBatch = 16
	// leastRate is how many bytes a second a server has to send, after it was waited
	// for during grace: it could hold up the reader for good.
	leastRate = 256 << 10
	grace     = 30 * time.Second
)

var (
	// ErrDamaged is an object whose bytes are not those that were stored.
	ErrDamaged = errors.New("damaged")
	// ErrSlow is an object that comes too slowly.
	ErrSlow = errors.New("too slow")
)

// Object opens an object of any object store, without a consumer. Reading returns
// an error that wraps ErrDamaged instead of io.EOF when the bytes are not those
// that were stored, or go on where they should end, and ErrSlow for a server that
// hardly sends anything; the context ends reading too. The error wraps model.ErrNotFound
// when there is no such object.
func (s Store) Object(ctx context.Context, bucket, name string) (io.ReadCloser, error) {
	info, err := s.objectInfo(ctx, bucket, name)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("no object store %s, or one without direct get (see nats object ls)", bucket)
	case err != nil:
		return nil, fmt.Errorf("object %s of %s: %w", name, bucket, err)
	}

	return s.open(ctx, info), nil
}

// open returns a reader of an object, which fetches it piece by piece.
func (s Store) open(ctx context.Context, info *jetstream.ObjectInfo) io.ReadCloser {
	parts := func(func(kvstore.Message, error) bool) {}
	if info.Chunks > 0 {
		parts = scan.Direct(ctx, s.store, kvstore.ObjectStream(info.Bucket), "$O."+info.Bucket+".C."+info.NUID, chunkBatch)
	}

	return newReader(info, parts)
}

// newReader returns a reader of an object that consists of some parts.
func newReader(info *jetstream.ObjectInfo, parts iter.Seq2[kvstore.Message, error]) *objectReader {
	next, stop := iter.Pull2(parts)

	return &objectReader{info: info, next: next, stop: stop, sum: sha256.New()}
}

// objectReader reads an object, no further than it says it goes, and checks the
// whole at its end.
type objectReader struct {
	info *jetstream.ObjectInfo
	next func() (kvstore.Message, error, bool)
	stop func()
	part []byte
	// read and chunks are how much came, waited how long that took.
	read   uint64
	chunks uint32
	waited time.Duration
	sum    hash.Hash
}

// Read reads the object.
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

// fetch waits for the next part. The error is io.EOF behind the last one of an
// object that is whole.
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
	if r.waited > grace+time.Duration(r.read/leastRate)*time.Second {
		return fmt.Errorf("%w: %d bytes in %s", ErrSlow, r.read, r.waited.Round(time.Second))
	}

	return nil
}

// Close ends reading.
func (r *objectReader) Close() error {
	r.stop()

	return nil
}

// check compares what was read with what was stored.
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

// objectInfo reads the metadata of an object.
func (s Store) objectInfo(ctx context.Context, bucket, name string) (*jetstream.ObjectInfo, error) {
	m, err := s.store.Value(ctx, kvstore.ObjectStream(bucket), "$O."+bucket+".M."+base64.URLEncoding.EncodeToString([]byte(name)))
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
