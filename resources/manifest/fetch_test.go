package manifest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/loopback"
)

const small = "muster: {resources: []}\n"

// bundle packs files, given as names and contents.
func bundle(t *testing.T, files ...string) []byte { return hosttest.TarGz(t, 0o644, files...) }

// unpacking unpacks bundles with the host, like the command.
func unpacking(t *testing.T) func(context.Context, io.Reader) (string, func() error, error) {
	t.Helper()
	h := host.New(host.Options{StateDir: t.TempDir()})

	return func(ctx context.Context, r io.Reader) (string, func() error, error) {
		dir, err := h.TempDir("bundle")
		if err != nil {
			return "", nil, err
		}
		cleanup := func() error { return os.RemoveAll(dir) }
		if err := archive.Unpack(ctx, r, dir, archive.Limits{}); err != nil {
			return "", nil, errors.Join(err, cleanup())
		}

		return dir, cleanup, nil
	}
}

// store is a bucket of keys and a bucket of objects.
func store(o *manifest.Options, keys map[string]string) {
	o.KV = func(_ context.Context, bucket, key string) ([]byte, error) {
		v, ok := keys[bucket+"/"+key]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return []byte(v), nil
	}
	o.Object = func(_ context.Context, bucket, name string) (io.ReadCloser, error) {
		v, ok := keys[bucket+"/"+name]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return io.NopCloser(strings.NewReader(v)), nil
	}
}

// TestFetch reads from every kind of source.
func TestFetch(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	packed := bundle(t, "manifest.yaml", small, "files/motd", "hi")
	for name, data := range map[string][]byte{"m.yaml": []byte(small), "b.tar.gz": packed} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/m.yaml":
			_, _ = io.WriteString(w, small)
		case "/private":
			if user, password, _ := r.BasicAuth(); user != "joe" || password != "hunter2" || r.URL.Query().Get("token") != "s3cret" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			_, _ = io.WriteString(w, small)
		case "/b.tar.gz":
			_, _ = w.Write(packed)
		case "/moved":
			http.Redirect(w, r, "/m.yaml", http.StatusFound)
		}
	}))
	defer server.Close()
	o := options()
	o.Unpack = unpacking(t)
	o.Stdin = strings.NewReader(small)
	store(&o, map[string]string{"b/node.x.y": small, "b/a/b.tar.gz": string(packed), "b/plain": small})
	l := manifest.NewLoader(o)
	private := strings.Replace(server.URL, "http://", "http://joe:hunter2@", 1) + "/private?token=s3cret"
	for source, want := range map[string]struct {
		name, dir string
		bundle    bool
	}{
		"m.yaml":                       {name: "m.yaml", dir: dir},
		"./b.tar.gz":                   {name: "./b.tar.gz/manifest.yaml", bundle: true},
		filepath.Join(dir, "m.yaml"):   {name: filepath.Join(dir, "m.yaml"), dir: dir},
		"-":                            {name: "(standard input)"},
		"kv://b/node.x.y":              {name: "kv://b/node.x.y"},
		"obj://b/plain":                {name: "obj://b/plain"},
		"obj://b/a/b.tar.gz":           {name: "obj://b/a/b.tar.gz/manifest.yaml", bundle: true},
		server.URL + "/m.yaml":         {name: server.URL + "/m.yaml"},
		server.URL + "/moved":          {name: server.URL + "/moved"},
		server.URL + "/b.tar.gz?x=abc": {name: server.URL + "/b.tar.gz/manifest.yaml", bundle: true},
		private:                        {name: server.URL + "/private"},
	} {
		t.Run(want.name, func(t *testing.T) {
			s, err := l.Fetch(t.Context(), source)
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != want.name || string(s.Data) != small || !want.bundle && s.Dir != want.dir {
				t.Errorf("got %+v", s)
			}
			digest := model.DigestOf([]byte(small))
			if want.bundle {
				digest = model.DigestOf(packed)
				if motd, err := os.ReadFile(filepath.Join(s.Dir, "files/motd")); err != nil || string(motd) != "hi" || !filepath.IsAbs(s.Dir) {
					t.Errorf("beside it: %q, %v", motd, err)
				}
			}
			if s.Digest != digest || !strings.HasPrefix(digest, "sha256-") || len(digest) != 71 {
				t.Errorf("digest %s, want %s", s.Digest, digest)
			}
			if _, err := l.Parse(s); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(s.Dir); want.bundle && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

// TestFetchProblems checks the problems of sources.
func TestFetchProblems(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := syscall.Mkfifo("fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"large.yaml":  bytes.Repeat([]byte("#\n"), 600),
		"none.tar.gz": bundle(t, "readme", "x"),
		"far.tar.gz":  bundle(t, "../x", "x"),
		"cut.tar.gz":  bundle(t, "manifest.yaml", small)[:40],
		"big.tar.gz":  bundle(t, "manifest.yaml", strings.Repeat("#\n", 600)),
		"long.tar.gz": append(bundle(t, "manifest.yaml", small), bytes.Repeat([]byte("x"), 5000)...),
	} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := options()
	o.MaxBytes, o.MaxBundleBytes = 1000, 4000
	o.Unpack = unpacking(t)
	store(&o, map[string]string{"b/large": strings.Repeat("#\n", 600)})
	for name, tc := range map[string]struct {
		source, want string
		is           error
	}{
		"empty":            {"", "invalid source: it is empty, give a path, -, kv://, obj:// or http(s)://", manifest.ErrSource},
		"no stdin":         {"-", "invalid source: there is no standard input to read", manifest.ErrSource},
		"scheme":           {"ftp://x/y", "invalid source: there is no scheme ftp://, give a path, -, kv://, obj:// or http(s)://", manifest.ErrSource},
		"missing":          {"nope.yaml", "open nope.yaml: no such file or directory", fs.ErrNotExist},
		"directory":        {".", ". is not a regular file", nil},
		"fifo":             {"fifo", "fifo is not a regular file", nil},
		"large":            {"large.yaml", "large.yaml: too large: more than the limit of 1000 bytes", manifest.ErrTooLarge},
		"kv key":           {"kv://b", "invalid source: write it as kv://bucket/key", manifest.ErrSource},
		"kv bucket":        {"kv:///k", "invalid source: write it as kv://bucket/key", manifest.ErrSource},
		"kv missing":       {"kv://b/nope", "kv://b/nope: file does not exist", fs.ErrNotExist},
		"kv large":         {"kv://b/large", "kv://b/large: too large: more than the limit of 1000 bytes", manifest.ErrTooLarge},
		"object name":      {"obj://b/", "invalid source: write it as obj://bucket/name", manifest.ErrSource},
		"object missing":   {"obj://b/nope", "obj://b/nope: file does not exist", fs.ErrNotExist},
		"no manifest":      {"none.tar.gz", "none.tar.gz: invalid source: the bundle has no manifest.yaml at its root", manifest.ErrSource},
		"outside":          {"far.tar.gz", "", archive.ErrUnsafeEntry},
		"cut off":          {"cut.tar.gz", "", archive.ErrNotArchive},
		"large manifest":   {"big.tar.gz", "", manifest.ErrTooLarge},
		"large bundle":     {"long.tar.gz", "", nil},
		"http":             {"http:///x", "invalid source: the URL is invalid: percent-encode special characters, such as / or @ in a password", manifest.ErrSource},
		"http credentials": {"http://joe:hun/ter2@x/y", "invalid source: the URL is invalid: percent-encode special characters, such as / or @ in a password", manifest.ErrSource},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := manifest.NewLoader(o).Fetch(t.Context(), tc.source)
			if err == nil {
				t.Fatalf("got %+v", s)
			}
			if tc.want != "" && err.Error() != tc.want || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
	bare := manifest.NewLoader(manifest.Options{})
	for from, want := range map[string]string{
		"kv://b/k":    "invalid source: kv://b/k needs a NATS connection: give --server or --context, or let an agent run it",
		"obj://b/k":   "invalid source: obj://b/k needs a NATS connection: give --server or --context, or let an agent run it",
		"none.tar.gz": "invalid source: none.tar.gz is a bundle, which cannot be unpacked here",
	} {
		if _, err := bare.Fetch(t.Context(), from); err == nil || err.Error() != want || !errors.Is(err, manifest.ErrSource) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestFetchHTTPProblems checks the errors of failing servers, which must not contain credentials.
func TestFetchHTTPProblems(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write(bytes.Repeat([]byte("#\n"), 600))
		case "/announced":
			w.Header().Set("Content-Length", "5000")
		case "/hangs":
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-release
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "x")
		case "/loop":
			http.Redirect(w, r, "/loop?token=s3cret", http.StatusFound)
		case "/back":
			// A client that quotes a bad Location would show its credentials.
			w.Header().Set("Location", "http://joe:hunter2@[bad/?token=s3cret")
			w.WriteHeader(http.StatusFound)
		default:
			http.Error(w, "hunter2", http.StatusNotFound)
		}
	}))
	defer server.Close()
	defer close(release)
	gone := loopback.Address(t).String()
	o := options()
	o.MaxBytes, o.MaxBundleBytes = 1000, 4000
	for name, tc := range map[string]struct{ base, path, want string }{
		"not found": {server.Listener.Addr().String(), "/nope", "the server answered 404 Not Found"},
		"large":     {server.Listener.Addr().String(), "/large", "too large: more than the limit of 1000 bytes"},
		"announced": {server.Listener.Addr().String(), "/announced", "too large: 5000 bytes"},
		"cut":       {server.Listener.Addr().String(), "/cut", "the download was cut short, 1 of 100 bytes were received: unexpected EOF"},
		"loop":      {server.Listener.Addr().String(), "/loop", "more than 10 redirects"},
		"location":  {server.Listener.Addr().String(), "/back", "failed to parse Location header"},
		"refused":   {gone, "/x", "connection refused"},
		"hangs":     {server.Listener.Addr().String(), "/hangs", "context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if name == "hangs" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
			}
			_, err := manifest.NewLoader(o).Fetch(ctx, "http://joe:hunter2@"+tc.base+tc.path+"?token=s3cret")
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "http://"+tc.base+tc.path+": ") {
				t.Fatalf("got %v, want %s", err, tc.want)
			}
			for _, secret := range []string{"hunter2", "s3cret", "joe"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q is in %v", secret, err)
				}
			}
		})
	}
}

// TestFetchGivesUpAServerThatStalls checks servers that pause in the middle of a response, with and
// without continuing.
func TestFetchGivesUpAServerThatStalls(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, small)
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/stalls" {
			<-release
		}
	}))
	defer server.Close()
	defer close(release)
	o := options()
	o.HTTPStall = 50 * time.Millisecond
	if _, err := manifest.NewLoader(o).Fetch(t.Context(), server.URL+"/stalls"); err == nil || err.Error() != server.URL+"/stalls: no data for 50ms" {
		t.Errorf("got %v", err)
	}
	o.HTTPStall = 0
	if s, err := manifest.NewLoader(o).Fetch(t.Context(), server.URL+"/goes-on"); err != nil || string(s.Data) != small {
		t.Errorf("got %+v, %v", s, err)
	}
}
