package manifest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
)

// bundleManifest is the manifest within a bundle.
const bundleManifest = "manifest.yaml"

// Source is a document that was fetched, with what came with it.
type Source struct {
	// Name is what its places are called; it holds no credentials.
	Name string
	// Dir is the directory that its relative paths are under, absolute; empty when it has none.
	Dir string
	// Data is the document.
	Data []byte
	// Digest is that of the bytes fetched: of the document or of the bundle.
	Digest string

	cleanup func() error
}

// Close removes what was unpacked for the source.
func (s *Source) Close() error {
	if s.cleanup == nil {
		return nil
	}

	return s.cleanup()
}

// Parse is Parse for a source that the loader fetched, with its limit.
func (l *Loader) Parse(s *Source) (*Document, error) { return parse(s.Name, s.Data, l.opts.MaxBytes) }

// ErrSource is a source that cannot be one: of an unknown scheme, incomplete,
// or of a kind that is not available here. It never passes by trying again.
var ErrSource = errors.New("invalid source")

// opened is a source that is open for reading.
type opened struct {
	name string
	dir  string
	io.ReadCloser
}

// Fetch reads a document from a path, "-", kv://bucket/key, obj://bucket/name
// or http(s)://. A tar.gz is a bundle: its manifest.yaml is the document, and
// what came with it is in Dir until Close. The caller closes the source. Its
// errors wrap ErrSource, ErrTooLarge, or what the path, server or NATS said.
func (l *Loader) Fetch(ctx context.Context, source string) (*Source, error) {
	o, err := l.open(ctx, source)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	r := bufio.NewReader(o)
	if start, _ := r.Peek(len(gzipMagic)); bytes.Equal(start, gzipMagic) && !strings.HasPrefix(source, "kv://") {
		return l.bundle(ctx, o.name, r)
	}
	data, err := readAll(r, l.opts.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name, because(ctx, err))
	}

	return &Source{Name: o.name, Dir: o.dir, Data: data, Digest: model.DigestOf(data)}, nil
}

// because gives why ctx ended, if it did: what a reader that was closed under
// says by then tells nothing.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}

	return err
}

func (l *Loader) open(ctx context.Context, source string) (*opened, error) {
	scheme, _, isURL := strings.Cut(source, "://")
	switch {
	case source == "":
		return nil, fmt.Errorf("%w: it is empty, give a path, -, kv://, obj:// or http(s)://", ErrSource)
	case source == "-" && l.opts.Stdin == nil:
		return nil, fmt.Errorf("%w: there is no standard input to read", ErrSource)
	case source == "-":
		return &opened{name: "(standard input)", ReadCloser: io.NopCloser(l.opts.Stdin)}, nil
	case !isURL:
		return openPath(source)
	case scheme == "http" || scheme == "https":
		return l.openHTTP(ctx, source)
	case scheme == "kv":
		return openBucket(ctx, source, "kv://bucket/key", l.opts.KV, func(value []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(value)) })
	case scheme == "obj":
		return openBucket(ctx, source, "obj://bucket/name", l.opts.Object, func(object io.ReadCloser) io.ReadCloser { return object })
	default:
		return nil, fmt.Errorf("%w: there is no scheme %s://, give a path, -, kv://, obj:// or http(s)://", ErrSource, scheme)
	}
}

func openPath(path string) (*opened, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}

	return &opened{name: path, dir: filepath.Dir(absolute), ReadCloser: f}, nil
}

// openBucket opens what a bucket has; get is nil without NATS.
func openBucket[T any](ctx context.Context, source, form string, get func(ctx context.Context, bucket, name string) (T, error), reader func(T) io.ReadCloser) (*opened, error) {
	_, rest, _ := strings.Cut(source, "://")
	bucket, name, _ := strings.Cut(rest, "/")
	switch {
	case bucket == "" || name == "":
		return nil, fmt.Errorf("%w: write it as %s", ErrSource, form)
	case get == nil:
		return nil, fmt.Errorf("%w: %s %w: %s", ErrSource, source, errNoNATS, noNATSHint)
	}
	found, err := get(ctx, bucket, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}

	return &opened{name: source, ReadCloser: reader(found)}, nil
}

// bundle unpacks a tar.gz and reads the manifest in it.
func (l *Loader) bundle(ctx context.Context, name string, r io.Reader) (*Source, error) {
	dir, cleanup, digest, err := l.unpack(ctx, name, r)
	s := &Source{Name: name + "/" + bundleManifest, Dir: dir, Digest: digest, cleanup: cleanup}
	if err == nil {
		if s.Data, err = readManifest(dir, l.opts.MaxBytes); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}

	return s, nil
}

// unpack unpacks a tar.gz into a directory of its own, and gives the digest of
// its bytes. cleanup may be there after an error too.
func (l *Loader) unpack(ctx context.Context, name string, r io.Reader) (dir string, cleanup func() error, digest string, err error) {
	if l.opts.Unpack == nil {
		return "", nil, "", fmt.Errorf("%w: %s is a bundle, which cannot be unpacked here", ErrSource, name)
	}
	counted := &countingReader{r: r, left: l.opts.MaxBundleBytes, sum: sha256.New()}
	dir, cleanup, err = l.opts.Unpack(ctx, counted)
	if err == nil {
		// What follows the archive belongs to the digest.
		_, err = io.Copy(io.Discard, counted)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, because(ctx, err))
	}

	return dir, cleanup, model.DigestFrom(counted.sum), err
}

func readManifest(dir string, limit int64) ([]byte, error) {
	text, err := readRegular(filepath.Join(dir, bundleManifest), limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: the bundle has no %s at its root", ErrSource, bundleManifest)
	}

	return []byte(text), err
}

// countingReader sums what is read and ends with an error at a limit.
type countingReader struct {
	r    io.Reader
	left int64
	sum  hash.Hash
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.left -= int64(n)
	_, _ = c.sum.Write(p[:n])
	if c.left < 0 {
		return 0, fmt.Errorf("%w: the bundle has more bytes than are allowed", ErrTooLarge)
	}

	return n, err
}
