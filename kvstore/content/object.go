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

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// chunkBatch is how many parts of an object are asked for at once.
const chunkBatch = 16

// ErrDamaged is an object whose bytes are not those that were stored.
var ErrDamaged = errors.New("damaged")

// Object opens an object of any object store, without a consumer. Reading gives
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

// Close ends reading, at any point.
func (r *objectReader) Close() error {
	r.cancel()
	err := r.PipeReader.Close()
	<-r.done

	return err
}

// objectInfo reads what an object store knows of an object.
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
		return nil, errors.New("it is a link: name the object it leads to")
	}
	info.Bucket = bucket

	return &info, nil
}

// copyObject writes the parts of an object in their order and checks the whole.
func (s Store) copyObject(ctx context.Context, info *jetstream.ObjectInfo, w io.Writer) error {
	sum := sha256.New()
	w = io.MultiWriter(w, sum)
	var written uint64
	seq := uint64(1)
	for parts := 0; parts < int(info.Chunks); {
		batch, err := s.chunks(ctx, info, seq)
		if err != nil {
			return err
		}
		for _, m := range batch {
			if _, err := w.Write(m.Data); err != nil {
				return err
			}
			written += uint64(len(m.Data))
			seq = m.Sequence + 1
		}
		parts += len(batch)
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
		return fmt.Errorf("%w: %d bytes of %d, or others than were stored", ErrDamaged, written, info.Size)
	}

	return nil
}

// chunks reads the next parts of an object from a sequence on.
func (s Store) chunks(ctx context.Context, info *jetstream.ObjectInfo, seq uint64) ([]kvstore.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, kvstore.RequestTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{
		"seq": seq, "next_by_subj": "$O." + info.Bucket + ".C." + info.NUID, "batch": chunkBatch,
	})
	if err != nil {
		return nil, err
	}
	inbox := s.store.Conn().NewInbox()
	sub, err := s.store.Conn().SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := s.store.Conn().PublishRequest("$JS.API.DIRECT.GET."+kvstore.ObjectStream(info.Bucket), inbox, body); err != nil {
		return nil, err
	}

	return collectChunks(ctx, sub)
}

// collectChunks waits for the parts of one answer and its end.
func collectChunks(ctx context.Context, sub *nats.Subscription) ([]kvstore.Message, error) {
	var batch []kvstore.Message
	for {
		reply, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return nil, err
		}
		if reply.Header.Get("Status") == "204" {
			if len(batch) == 0 {
				return nil, fmt.Errorf("%w: parts are missing", ErrDamaged)
			}

			return batch, nil
		}
		m, err := kvstore.DirectMessage(reply)
		if errors.Is(err, model.ErrNotFound) {
			return nil, fmt.Errorf("%w: parts are missing", ErrDamaged)
		}
		if err != nil {
			return nil, err
		}
		batch = append(batch, m)
	}
}
