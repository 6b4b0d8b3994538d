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
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/web"
)

// Source is a document that was fetched, with what came with it.
type Source struct {
	// Name is what its places are called; it holds no credentials.
	Name string
	// Dir is the directory that its relative paths are under, absolute; empty when it has none.
	Dir string
	// Author is who may change what the document names.
	Author paths.Author
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

// ErrSource is a source that cannot be one: of an unknown scheme, incomplete,
// or of a kind that is not available here. It never passes by trying again.
var ErrSource = errors.New("invalid source")

// defaultStall is how long a server may send nothing, by default.
const defaultStall = 30 * time.Second

// opened is a source that is open for reading.
type opened struct {
	name   string
	dir    string
	author paths.Author
	io.ReadCloser
}

// Fetch reads a document from a path, "-", kv://bucket/key, obj://bucket/name
// or http(s)://. A tar.gz is a bundle: its manifest.yaml is the document, and
// what came with it is in Dir until Close. The caller closes the source. Its
// errors wrap ErrSource, ErrTooLarge, or what the path, server or NATS said.
func (l *Loader) Fetch(ctx context.Context, source string) (*Source, error) {
	return l.FetchTrusted(ctx, source, paths.Author{Everybody: true})
}

// FetchTrusted is Fetch that returns paths.ErrUntrusted, with the remedy, for a file
// that others than root, the running user and the author may change.
func (l *Loader) FetchTrusted(ctx context.Context, source string, author paths.Author) (*Source, error) {
	o, err := l.open(ctx, source, author)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	r := bufio.NewReader(o)
	if start, _ := r.Peek(len(gzipMagic)); bytes.Equal(start, gzipMagic) && !strings.HasPrefix(source, "kv://") {
		return l.bundle(ctx, o, r)
	}
	data, err := readAll(r, l.opts.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name, causeOf(ctx, err))
	}

	return &Source{Name: o.name, Dir: o.dir, Author: o.author, Data: data, Digest: model.DigestOf(data)}, nil
}

// because returns why ctx ended, if it did: what a reader that was closed under
// says by then is noise.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}

	return err
}

func (l *Loader) open(ctx context.Context, source string, author paths.Author) (*opened, error) {
	scheme, _, isURL := strings.Cut(source, "://")
	switch {
	case source == "":
		return nil, fmt.Errorf("%w: it is empty, give a path, -, kv://, obj:// or http(s)://", ErrSource)
	case source == "-" && l.opts.Stdin == nil:
		return nil, fmt.Errorf("%w: there is no standard input to read", ErrSource)
	case source == "-":
		return &opened{name: "(standard input)", ReadCloser: io.NopCloser(l.opts.Stdin)}, nil
	case !isURL:
		return openPath(source, author)
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

func openPath(path string, author paths.Author) (*opened, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	file, own, err := files.OpenTrusted(path, author)
	if err != nil {
		return nil, err
	}

	return &opened{name: path, dir: filepath.Dir(absolute), author: own, ReadCloser: file}, nil
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
func (l *Loader) bundle(ctx context.Context, o *opened, r io.Reader) (*Source, error) {
	name := o.name
	dir, cleanup, digest, err := l.unpack(ctx, name, r)
	s := &Source{Name: name + "/" + model.BundleManifest, Dir: dir, Author: o.author, Digest: digest, cleanup: cleanup}
	s.Author.Private = dir
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

// unpack unpacks a tar.gz into a directory of its own, and returns the digest of
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
		err = fmt.Errorf("%s: %w", name, causeOf(ctx, err))
	}

	return dir, cleanup, model.DigestFrom(counted.sum), err
}

// Tree fetches a tar.gz and unpacks it.
func (l *Loader) Tree(ctx context.Context, source string) (dir string, cleanup func() error, err error) {
	if !strings.HasPrefix(source, "obj://") && !strings.HasPrefix(source, "http://") && !strings.HasPrefix(source, "https://") {
		return "", nil, fmt.Errorf("%w: a tree is fetched from http(s):// or obj://", ErrSource)
	}
	opened, err := l.open(ctx, source, paths.Author{})
	if err != nil {
		return "", nil, err
	}
	dir, cleanup, _, err = l.unpack(ctx, opened.name, bufio.NewReader(opened))
	err = errors.Join(err, opened.Close())
	if err != nil && cleanup != nil {
		err = errors.Join(err, cleanup())
		cleanup = nil
	}

	return dir, cleanup, err
}

func readManifest(dir string, limit int64) ([]byte, error) {
	text, err := files.Read(filepath.Join(dir, model.BundleManifest), limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: the bundle has no %s at its root", ErrSource, model.BundleManifest)
	}
	if errors.Is(err, files.ErrTooLarge) {
		return nil, fmt.Errorf("%w: %w", ErrTooLarge, err)
	}

	return text, err
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

// fetchTimeout bounds the fetching of a document or bundle.
const fetchTimeout = 10 * time.Minute

// openHTTP asks for a URL. Its errors never hold credentials: neither
// those before the host nor the query.
func (l *Loader) openHTTP(ctx context.Context, source string) (*opened, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, secrets, err := web.NewRequest(ctx, source)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	name := web.Name(req.URL)
	resp, err := l.client.Do(req)
	if err != nil {
		cancel(nil)
		return nil, web.Failed(req.URL, err, secrets...)
	}
	body := &stalling{ReadCloser: resp.Body, ended: func() error { return context.Cause(ctx) }, cancel: cancel, limit: l.opts.HTTPStall, announced: resp.ContentLength}
	if resp.StatusCode != http.StatusOK {
		_ = body.Close()
		return nil, fmt.Errorf("%s: the server answered %s", name, resp.Status)
	}
	if resp.ContentLength > l.opts.MaxBundleBytes {
		_ = body.Close()
		return nil, fmt.Errorf("%s: %w: %d bytes", name, ErrTooLarge, resp.ContentLength)
	}

	return &opened{name: name, ReadCloser: body}, nil
}

// stalling is the body of an answer, which is given up when nothing of it comes
// for too long.
type stalling struct {
	io.ReadCloser
	ended  func() error
	cancel context.CancelCauseFunc
	limit  time.Duration
	// announced is the length of the answer, -1 if it is unknown; received counts its bytes.
	announced, received int64
}

// Read reads, for as long as the limit allows.
func (s *stalling) Read(b []byte) (int, error) {
	timer := time.AfterFunc(s.limit, func() { s.cancel(fmt.Errorf("nothing came for %s", s.limit)) })
	n, err := s.ReadCloser.Read(b)
	timer.Stop()
	s.received += int64(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = web.CutShort(s.received, s.announced)
	}
	if cause := s.ended(); err != nil && cause != nil {
		return n, cause
	}

	return n, err
}

// Close ends the request.
func (s *stalling) Close() error {
	err := s.ReadCloser.Close()
	s.cancel(nil)

	return err
}

// ErrTooLarge is a source with more bytes than are allowed.
var ErrTooLarge = errors.New("too large")

func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: more than the %d bytes that are allowed", ErrTooLarge, limit)
	}

	return data, nil
}

// GzipMagic is how a bundle begins.
var gzipMagic = []byte{0x1f, 0x8b}

// ErrNoNATS is a source on NATS where there is no connection.
var errNoNATS = errors.New("needs a NATS connection")

// NoNATSHint is the remedy of ErrNoNATS.
const noNATSHint = "give --server or --context, or let an agent run it"
