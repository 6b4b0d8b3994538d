package desired_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
)

var errBroken = errors.New("it goes on")

// broken is a bundle that ends with an error.
type broken struct{}

func (broken) GetBundle(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), failing{})), nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errBroken }

func TestNothingStaysOfABrokenDownload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := desired.Bundles{Log: slog.New(slog.DiscardHandler), Host: host.New(host.Options{StateDir: dir}), Source: broken{}, Dir: filepath.Join(dir, "bundles")}
	_, _, err := store.Open(t.Context(), "group.all.motd", model.DigestOf([]byte("x")))
	if err == nil || !strings.Contains(err.Error(), errBroken.Error()) {
		t.Errorf("open = %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// source has one bundle that never comes; each other one fails at once, one by a panic.
type source struct {
	slow, evil string
	asked      map[string]int
}

func (s *source) GetBundle(ctx context.Context, digest string) (io.ReadCloser, error) {
	switch digest {
	case s.slow:
		<-ctx.Done()
		return nil, ctx.Err()
	case s.evil:
		panic("evil")
	}
	s.asked[digest]++

	return nil, errBroken
}

// While one bundle does not come, the others are waited for no longer: each is asked
// for once, however many assignments have it, until it is tried again.
func TestOneOfManyBundlesThatDoesNotCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow, evil, bad := model.DigestOf([]byte("slow")), model.DigestOf([]byte("evil")), model.DigestOf([]byte("bad"))
		from := &source{slow: slow, evil: evil, asked: map[string]int{}}
		dir, arrived := t.TempDir(), 0
		store := desired.Bundles{
			Log: slog.New(slog.DiscardHandler), Host: host.New(host.Options{StateDir: dir}), Source: from, Dir: filepath.Join(dir, "bundles"), Arrived: func() { arrived++ },
		}
		open := func(digest string) error {
			_, _, err := store.Open(t.Context(), "group.all.motd", digest)
			synctest.Wait()
			return err
		}
		began := time.Now()
		for _, digest := range []string{slow, evil, bad, slow} {
			if err := open(digest); !errors.Is(err, desired.ErrFetching) {
				t.Errorf("open = %v", err)
			}
		}
		if took := time.Since(began); took > 2*time.Second || arrived != 2 {
			t.Errorf("waited for %s, %d arrived", took, arrived)
		}
		if err := open(evil); err == nil || !strings.Contains(err.Error(), "panic") {
			t.Errorf("open = %v", err)
		}
		for range 3 {
			if err := open(bad); err == nil || !strings.Contains(err.Error(), errBroken.Error()) {
				t.Errorf("open = %v", err)
			}
		}
		store.Forget()
		if err := open(bad); !errors.Is(err, desired.ErrFetching) || from.asked[bad] != 2 || arrived != 3 {
			t.Errorf("open = %v, asked %d times, %d arrived", err, from.asked[bad], arrived)
		}
		store.Close(t.Context())
		if left, err := filepath.Glob(filepath.Join(dir, "tmp", "*")); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	})
}

// packed is a source of one bundle, and counts how often it is asked for.
type packed struct {
	data  []byte
	asked int
}

func (p *packed) GetBundle(context.Context, string) (io.ReadCloser, error) {
	p.asked++
	return io.NopCloser(bytes.NewReader(p.data)), nil
}

// A bundle that cannot be moved to its place is fetched again at the next retry, not at every read.
func TestBundleWithoutAPlace(t *testing.T) {
	t.Parallel()
	var data bytes.Buffer
	z := gzip.NewWriter(&data)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: model.BundleManifest, Mode: 0o644, Size: 2})
	if err == nil {
		_, err = io.WriteString(w, "{}")
	}
	if err = errors.Join(err, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	from := &packed{data: data.Bytes()}
	dir := t.TempDir()
	store := desired.Bundles{Log: slog.New(slog.DiscardHandler), Host: host.New(host.Options{StateDir: dir}), Source: from, Dir: filepath.Join(dir, "bundles")}
	if err := os.WriteFile(store.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() error {
		_, _, err := store.Open(t.Context(), "group.all.motd", model.DigestOf(data.Bytes()))
		return err
	}
	for range 2 {
		if err := open(); err == nil || from.asked != 1 {
			t.Errorf("open = %v, asked %d times", err, from.asked)
		}
	}
	if err := os.Remove(store.Dir); err != nil {
		t.Fatal(err)
	}
	store.Forget()
	if err := open(); err != nil || from.asked != 2 {
		t.Errorf("open = %v, asked %d times", err, from.asked)
	}
}
