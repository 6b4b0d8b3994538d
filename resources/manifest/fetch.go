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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/web"
)

// Source is a fetched document.
type Source struct {
	// Name is the file name in positions, without credentials.
	Name string
	// Dir is the absolute directory of its relative paths, or empty.
	Dir string
	// Author may change what the document names.
	Author paths.Author
	// Data is the document.
	Data []byte
	// Digest is the digest of the fetched bytes: of the document or of the bundle.
	Digest string

	cleanup func() error
}

// Close removes the unpacked files of the source.
func (s *Source) Close() error {
	if s.cleanup == nil {
		return nil
	}

	return s.cleanup()
}

// ErrSource is the error of an invalid source: an unknown scheme, an incomplete source, or a source
// that is not available here. It is permanent.
var ErrSource = errors.New("invalid source")

// defaultStall is the default of Options.HTTPStall.
const defaultStall = 30 * time.Second

// Fetch reads a document from a path, "-", kv://bucket/key, obj://bucket/name or http(s)://. A
// tar.gz is a bundle: its manifest.yaml is the document, and Dir contains its files until Close.
// The caller closes the source. Errors wrap ErrSource, ErrTooLarge, or the error of the path,
// server or NATS.
func (l *Loader) Fetch(ctx context.Context, source string) (*Source, error) {
	return l.FetchTrusted(ctx, source, paths.Author{Everybody: true})
}

// FetchTrusted is Fetch that returns paths.ErrUntrusted, with the remedy, for a file that users
// other than root, the running user and the author may change.
func (l *Loader) FetchTrusted(ctx context.Context, source string, author paths.Author) (*Source, error) {
	s, body, err := l.open(ctx, source, author)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	r := bufio.NewReader(body)
	if start, _ := r.Peek(len(gzipMagic)); bytes.Equal(start, gzipMagic) && !strings.HasPrefix(source, "kv://") {
		return l.bundle(ctx, s, r)
	}
	if s.Data, err = readAll(r, l.opts.MaxBytes); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, causeOf(ctx, err))
	}
	s.Digest = model.DigestOf(s.Data)

	return s, nil
}

// causeOf returns the cause of ctx if it has ended, because errors of a closed reader are noise
// then.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}

	return err
}

// open opens a source. The result has no data yet.
func (l *Loader) open(ctx context.Context, source string, author paths.Author) (*Source, io.ReadCloser, error) {
	scheme, _, isURL := strings.Cut(source, "://")
	switch {
	case source == "":
		return nil, nil, fmt.Errorf("%w: it is empty, give a path, -, kv://, obj:// or http(s)://", ErrSource)
	case source == "-" && l.opts.Stdin == nil:
		return nil, nil, fmt.Errorf("%w: there is no standard input to read", ErrSource)
	case source == "-":
		return &Source{Name: "(standard input)"}, io.NopCloser(l.opts.Stdin), nil
	case !isURL:
		return openPath(source, author)
	case scheme == "http" || scheme == "https":
		return l.openHTTP(ctx, source)
	case scheme == "kv":
		return openBucket(ctx, source, "kv://bucket/key", l.opts.KV, func(value []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(value)) })
	case scheme == "obj":
		return openBucket(ctx, source, "obj://bucket/name", l.opts.Object, func(object io.ReadCloser) io.ReadCloser { return object })
	default:
		return nil, nil, fmt.Errorf("%w: there is no scheme %s://, give a path, -, kv://, obj:// or http(s)://", ErrSource, scheme)
	}
}

func openPath(path string, author paths.Author) (*Source, io.ReadCloser, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	file, own, err := files.OpenTrusted(path, author)
	if err != nil {
		return nil, nil, err
	}

	return &Source{Name: path, Dir: filepath.Dir(absolute), Author: own}, file, nil
}

// openBucket opens a source in a bucket. get is nil without NATS.
func openBucket[T any](ctx context.Context, source, form string, get func(ctx context.Context, bucket, name string) (T, error), reader func(T) io.ReadCloser) (*Source, io.ReadCloser, error) {
	_, rest, _ := strings.Cut(source, "://")
	bucket, name, _ := strings.Cut(rest, "/")
	switch {
	case bucket == "" || name == "":
		return nil, nil, fmt.Errorf("%w: write it as %s", ErrSource, form)
	case get == nil:
		return nil, nil, fmt.Errorf("%w: %s %w: %s", ErrSource, source, errNoNATS, noNATSHint)
	}
	found, err := get(ctx, bucket, name)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", source, err)
	}

	return &Source{Name: source}, reader(found), nil
}

func (l *Loader) bundle(ctx context.Context, s *Source, r io.Reader) (_ *Source, err error) {
	name := s.Name
	s.Dir, s.cleanup, s.Digest, err = l.unpack(ctx, name, r)
	s.Name, s.Author.Private = name+"/"+model.BundleManifest, s.Dir
	if err == nil {
		if s.Data, err = readManifest(s.Dir, l.opts.MaxBytes); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}

	return s, nil
}

// unpack unpacks a tar.gz into a new directory, and returns the digest of its bytes. cleanup may be
// set after an error too.
func (l *Loader) unpack(ctx context.Context, name string, r io.Reader) (dir string, cleanup func() error, digest string, err error) {
	if l.opts.Unpack == nil {
		return "", nil, "", fmt.Errorf("%w: %s is a bundle, which cannot be unpacked here", ErrSource, name)
	}
	counted := &countingReader{r: r, left: l.opts.MaxBundleBytes, sum: sha256.New()}
	dir, cleanup, err = l.opts.Unpack(ctx, counted)
	if err == nil {
		// The digest includes the bytes after the archive.
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
	s, body, err := l.open(ctx, source, paths.Author{})
	if err != nil {
		return "", nil, err
	}
	dir, cleanup, _, err = l.unpack(ctx, s.Name, bufio.NewReader(body))
	err = errors.Join(err, body.Close())
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

// countingReader hashes what it reads and fails at a limit.
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
		return 0, fmt.Errorf("%w: the bundle exceeds the size limit", ErrTooLarge)
	}

	return n, err
}

// fetchTimeout limits the time to fetch a document or bundle.
const fetchTimeout = 10 * time.Minute

// openHTTP requests a URL. Its errors contain no credentials: neither the user information nor the
// query.
func (l *Loader) openHTTP(ctx context.Context, source string) (*Source, io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, secrets, err := web.NewRequest(ctx, source)
	if err != nil {
		cancel(nil)
		return nil, nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	name := web.Name(req.URL)
	resp, err := l.client.Do(req)
	if err != nil {
		cancel(nil)
		return nil, nil, web.Failed(req.URL, err, secrets...)
	}
	body := &stalling{ReadCloser: resp.Body, ended: func() error { return context.Cause(ctx) }, cancel: cancel, limit: l.opts.HTTPStall, announced: resp.ContentLength}
	if resp.StatusCode != http.StatusOK {
		_ = body.Close()
		return nil, nil, fmt.Errorf("%s: the server answered %s", name, resp.Status)
	}
	if resp.ContentLength > l.opts.MaxBundleBytes {
		_ = body.Close()
		return nil, nil, fmt.Errorf("%s: %w: %d bytes", name, ErrTooLarge, resp.ContentLength)
	}

	return &Source{Name: name}, body, nil
}

// stalling is the body of a response. Read fails if the server pauses for too long.
type stalling struct {
	io.ReadCloser
	ended  func() error
	cancel context.CancelCauseFunc
	limit  time.Duration
	// announced is the length of the response, or -1. received counts its bytes.
	announced, received int64
}

// Read reads until the limit of a pause.
func (s *stalling) Read(b []byte) (int, error) {
	timer := time.AfterFunc(s.limit, func() { s.cancel(fmt.Errorf("no data for %s", s.limit)) })
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

// ErrTooLarge is the error of a source over the size limit.
var ErrTooLarge = errors.New("too large")

func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: more than the limit of %d bytes", ErrTooLarge, limit)
	}

	return data, nil
}

// gzipMagic is the beginning of a bundle.
var gzipMagic = []byte{0x1f, 0x8b}

// errNoNATS is the error of a source on NATS without a connection.
var errNoNATS = errors.New("needs a NATS connection")

// noNATSHint is the remedy of errNoNATS.
const noNATSHint = "give --server or --context, or let an agent run it"

// ErrNoManifest is the error of a directory without manifest.yaml.
var ErrNoManifest = errors.New("no " + model.BundleManifest + " at its root")

// maxRead limits how many files of a directory are searched for manifests.
const maxRead = 20

// NoManifestError is the error of a directory without manifest.yaml. It wraps ErrNoManifest.
type NoManifestError struct {
	Dir string
	// Others are the files in the directory that contain manifests.
	Others []string
}

// NoManifest returns the error of a directory without manifest.yaml.
func NoManifest(dir string) *NoManifestError {
	out := &NoManifestError{Dir: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return out
	}
	read := 0
	for _, e := range entries {
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(e.Name()))) {
			continue
		}
		if read++; read > maxRead {
			break
		}
		text, err := files.Read(filepath.Join(dir, e.Name()), DefaultMaxBytes)
		if err != nil {
			continue
		}
		if doc, err := Parse(e.Name(), text); err == nil && doc.HasResources() {
			out.Others = append(out.Others, e.Name())
		}
	}

	return out
}

// Error suggests the other manifests.
func (e *NoManifestError) Error() string {
	text := fmt.Sprintf("%s: %s", e.Dir, ErrNoManifest)
	switch len(e.Others) {
	case 0:
		return text
	case 1:
		return fmt.Sprintf("%s, did you mean %s? (rename it to %s to include the other files)", text, filepath.Join(e.Dir, e.Others[0]), model.BundleManifest)
	default:
		return fmt.Sprintf("%s; its manifests are %s: name one of them", text, strings.Join(e.Others, ", "))
	}
}

// Unwrap returns ErrNoManifest.
func (e *NoManifestError) Unwrap() error { return ErrNoManifest }
