package kvstore

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

	"github.com/musterfleet/muster/model"
)

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

// check compares the size and the digest of the read bytes with the metadata.
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
