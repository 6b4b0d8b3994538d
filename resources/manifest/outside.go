package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// setDynamic notes that something other than the document and data went in.
func (s *session) setDynamic() {
	s.mu.Lock()
	s.dynamic = true
	s.mu.Unlock()
}

// readFile is the function readFile. A file that an earlier resource of the
// manifest makes has to wait for it, so while nothing is running it is late.
func (s *session) readFile(path string, running bool) (string, error) {
	s.setDynamic()
	if err := s.elsewhere(path); err != nil {
		return "", err
	}
	if !filepath.IsAbs(path) {
		if s.dir == "" {
			return "", hintedError{fmt.Errorf("%q is relative, and this manifest has no directory", path), "deliver manifest and files as a bundle, or give an absolute path"}
		}
		path = filepath.Join(s.dir, path)
	}
	path = filepath.Clean(path)
	if running {
		return readRegular(path, s.loader.opts.MaxBytes)
	}
	if ref, ok := s.provided[resource.PathNeed(path)]; ok {
		return "", lateError{ref: ref}
	}

	return s.cached("file:"+path, func() (string, error) { return readRegular(path, s.loader.opts.MaxBytes) })
}

// cached remembers what a key stands for, so that it is the same in the whole document.
func (s *session) cached(key string, get func() (string, error)) (string, error) {
	s.mu.Lock()
	v, have := s.cache[key]
	s.mu.Unlock()
	if have {
		return v, nil
	}
	v, err := get()
	if err == nil {
		s.mu.Lock()
		s.cache[key] = v
		s.mu.Unlock()
	}

	return v, err
}

// readRegular reads a regular file.
func readRegular(path string, limit int64) (string, error) {
	f, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := readAll(f, limit)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}

	return string(data), nil
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

// gzipMagic is how a bundle begins.
var gzipMagic = []byte{0x1f, 0x8b}

var errNoNATS = errors.New("needs a NATS connection")

const noNATSHint = "give --server or --context, or let an agent run it"

// kvGet is the function kvGet.
func (s *session) kvGet(ctx context.Context, bucket, key string) (string, error) {
	s.setDynamic()
	if s.loader.opts.KV == nil {
		return "", hintedError{fmt.Errorf("kvGet %w", errNoNATS), noNATSHint}
	}

	return s.cached("kv:"+bucket+"\x00"+key, func() (string, error) {
		v, err := s.loader.opts.KV(ctx, bucket, key)
		if err != nil {
			return "", fmt.Errorf("kvGet %s/%s: %w", bucket, key, err)
		}
		return string(v), nil
	})
}
