package content

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// chunkBatch is how many parts of an object are read at once.
const chunkBatch = 16

// ErrDamaged is an object whose bytes are not those that were stored.
var ErrDamaged = errors.New("damaged")

// Object opens an object of any object store, without a consumer. Reading returns
// an error that wraps ErrDamaged instead of io.EOF when the bytes are not those
// that were stored; the context ends reading too. The error wraps model.ErrNotFound
// when there is no such object.
func (s Store) Object(ctx context.Context, bucket, name string) (io.ReadCloser, error) {
	info, err := s.objectInfo(ctx, bucket, name)
	if err != nil {
		return nil, fmt.Errorf("object %s of %s: %w", name, bucket, err)
	}

	return s.open(ctx, info), nil
}

// open fetches an object while it is read.
func (s Store) open(ctx context.Context, info *jetstream.ObjectInfo) io.ReadCloser {
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := s.copyObject(ctx, info, w)
		if err != nil {
			err = fmt.Errorf("object %s of %s: %w", info.Name, info.Bucket, err)
		}
		// Without an error the reader sees the end.
		_ = w.CloseWithError(err)
	}()

	return &objectReader{PipeReader: r, cancel: cancel, done: done}
}

// objectReader reads an object; its Close waits for what fetches it.
type objectReader struct {
	*io.PipeReader
	cancel context.CancelFunc
	done   <-chan struct{}
}

// Close ends reading.
func (r *objectReader) Close() error {
	r.cancel()
	err := r.PipeReader.Close()
	<-r.done

	return err
}

// objectInfo reads the metadata of an object.
func (s Store) objectInfo(ctx context.Context, bucket, name string) (*jetstream.ObjectInfo, error) {
	m, err := s.store.Last(ctx, kvstore.ObjectStream(bucket), "$O."+bucket+".M."+base64.URLEncoding.EncodeToString([]byte(name)))
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

// copyObject writes the parts of an object in their order and checks the whole.
func (s Store) copyObject(ctx context.Context, info *jetstream.ObjectInfo, w io.Writer) error {
	sum := sha256.New()
	w = io.MultiWriter(w, sum)
	var written uint64
	if info.Chunks > 0 {
		for m, err := range s.store.DirectAll(ctx, kvstore.ObjectStream(info.Bucket), "$O."+info.Bucket+".C."+info.NUID, chunkBatch) {
			if err != nil {
				return err
			}
			if _, err := w.Write(m.Data); err != nil {
				return err
			}
			written += uint64(len(m.Data))
		}
	}

	return checkObject(info, written, sum)
}

// checkObject compares what was read with what was stored.
func checkObject(info *jetstream.ObjectInfo, written uint64, sum hash.Hash) error {
	want, err := jetstream.DecodeObjectDigest(info.Digest)
	if err != nil {
		return fmt.Errorf("%w: digest: %w", ErrDamaged, err)
	}
	if written != info.Size || string(want) != string(sum.Sum(nil)) {
		return fmt.Errorf("%w: %d of %d bytes, or other bytes than were stored", ErrDamaged, written, info.Size)
	}

	return nil
}
