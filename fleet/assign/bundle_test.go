package assign_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/manifest"
)

// pushBundle pushes a source as a bundle and gives the bundle's bytes.
func pushBundle(t testing.TB, s *assign.Source) ([]byte, string) {
	t.Helper()
	store := newMemory()
	done, err := pusher(store).Push(t.Context(), assign.Push{Source: s, Name: "site", Targets: []fleet.Target{{Node: "a"}}, Bundle: true})
	if err != nil {
		t.Fatal(err)
	}

	return store.bundles[done[0].Digest], done[0].Digest
}

// read reads a source that must be good.
func read(t testing.TB, path string, check assign.ManifestCheck) *assign.Source {
	t.Helper()
	s, err := assign.ReadSource(path, nil, check)
	if err != nil {
		t.Fatal(err)
	}

	return s
}

// listing gives the entries of a bundle by name.
func listing(t testing.TB, bundle []byte) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(bundle))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	archive := tar.NewReader(unzipped)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(time.Unix(0, 0)) || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%s carries a time or an owner: %v", h.Name, h)
		}
		out[h.Name] = os.FileMode(h.Mode).String() + " " + h.Linkname + string(content)
	}
}

func TestBundleOfDirectory(t *testing.T) {
	dir := write(t, map[string]string{
		"manifest.yaml": "muster: {}\n", "files/motd": "hello\n", "files/script": "#!/bin/sh\n", "empty/": "",
		"link": "->files/motd", "files/up": "->../manifest.yaml", ".git/config": "secret", "sub/.svn/x": "x",
	})
	if err := os.Chmod(filepath.Join(dir, "files/script"), 0o750); err != nil {
		t.Fatal(err)
	}
	bundle, digest := pushBundle(t, read(t, dir, anything))
	want := map[string]string{
		"manifest.yaml": "-rw-r--r-- muster: {}\n", "files/": "-rwxr-xr-x ", "files/motd": "-rw-r--r-- hello\n", "files/script": "-rwxr-xr-x #!/bin/sh\n",
		"empty/": "-rwxr-xr-x ", "link": "-rwxrwxrwx files/motd", "files/up": "-rwxrwxrwx ../manifest.yaml", "sub/": "-rwxr-xr-x ",
	}
	if got := listing(t, bundle); !reflect.DeepEqual(got, want) {
		t.Errorf("bundle holds %q", got)
	}
	if model.DigestOf(bundle) != digest {
		t.Errorf("digest is %s, that of the bytes %s", digest, model.DigestOf(bundle))
	}
	target := t.TempDir()
	if err := archive.Unpack(t.Context(), bytes.NewReader(bundle), target, archive.Limits{}); err != nil {
		t.Errorf("a node cannot unpack it: %v", err)
	}
}

// Equal content has an equal digest, independent of packer and time.
func TestBundleIsTheSameEveryTime(t *testing.T) {
	files := map[string]string{"manifest.yaml": "muster: {}\n", "a": "1", "a.d/x": "2", "a-b": "3"}
	first, second := write(t, files), write(t, files)
	old := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := errors.Join(os.Chtimes(filepath.Join(second, "a"), old, old), os.Chmod(filepath.Join(second, "a"), 0o600), os.Chmod(filepath.Join(second, "a.d"), 0o700)); err != nil {
		t.Fatal(err)
	}
	one, digest := pushBundle(t, read(t, first, anything))
	two, other := pushBundle(t, read(t, second, anything))
	if digest != other || !bytes.Equal(one, two) {
		t.Errorf("equal content gives %s and %s", digest, other)
	}
	if err := os.WriteFile(filepath.Join(second, "a"), []byte("4"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, changed := pushBundle(t, read(t, second, anything)); changed == digest {
		t.Error("other content gives the same digest")
	}
}

// A bundle contains the manifest and the files that it names, and no others.
func TestBundleOfNamedFiles(t *testing.T) {
	dir := write(t, map[string]string{"site.yaml": "muster: {}\n", "files/motd": "hello\n", "files/private": "no", "conf.d/a": "A", "conf.d/b": "B"})
	s := read(t, filepath.Join(dir, "site.yaml"), naming("files/motd", "./conf.d"))
	if !s.NeedsBundle() {
		t.Fatal("it can travel alone")
	}
	bundle, _ := pushBundle(t, s)
	want := map[string]string{
		"manifest.yaml": "-rw-r--r-- muster: {}\n", "files/": "-rwxr-xr-x ", "files/motd": "-rw-r--r-- hello\n",
		"conf.d/": "-rwxr-xr-x ", "conf.d/a": "-rw-r--r-- A", "conf.d/b": "-rw-r--r-- B",
	}
	if got := listing(t, bundle); !reflect.DeepEqual(got, want) {
		t.Errorf("bundle holds %q", got)
	}
}

func TestBundleRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		is    error
		says  string
	}{
		"absolute link":          {map[string]string{"x": "->/etc/passwd"}, assign.ErrNotBundled, "/etc/passwd"},
		"link out of it":         {map[string]string{"x": "->../other"}, assign.ErrNotBundled, "leads out"},
		"link up behind a name":  {map[string]string{"a/x": "->b/../c"}, assign.ErrNotBundled, "leads out"},
		"link that is up itself": {map[string]string{"a/x": "->../.."}, assign.ErrNotBundled, "leads out"},
	} {
		t.Run(name, func(t *testing.T) {
			c.files["manifest.yaml"] = "muster: {}\n"
			store := newMemory()
			_, err := pusher(store).Push(t.Context(), assign.Push{Source: read(t, write(t, c.files), anything), Name: "site", Targets: []fleet.Target{{Node: "a"}}})
			wantError(t, err, c.is, c.says)
			if len(store.bundles)+len(store.entries) > 0 {
				t.Error("something was pushed")
			}
		})
	}
	t.Run("fifo", func(t *testing.T) {
		dir := write(t, map[string]string{"manifest.yaml": "muster: {}\n"})
		if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := pusher(newMemory()).Push(t.Context(), assign.Push{Source: read(t, dir, anything), Name: "site", Targets: []fleet.Target{{Node: "a"}}})
		wantError(t, err, assign.ErrNotBundled, "bundle pipe")
	})
	t.Run("above the manifest", func(t *testing.T) {
		dir := write(t, map[string]string{"sub/site.yaml": "x", "other": "y"})
		s := read(t, filepath.Join(dir, "sub/site.yaml"), naming("../other"))
		_, err := pusher(newMemory()).Push(t.Context(), assign.Push{Source: s, Name: "site", Targets: []fleet.Target{{Node: "a"}}})
		wantError(t, err, assign.ErrNotBundled, "../other")
	})
	t.Run("in the manifest's place", func(t *testing.T) {
		dir := write(t, map[string]string{"site.yaml": "x", "manifest.yaml": "y"})
		s := read(t, filepath.Join(dir, "site.yaml"), naming("manifest.yaml"))
		_, err := pusher(newMemory()).Push(t.Context(), assign.Push{Source: s, Name: "site", Targets: []fleet.Target{{Node: "a"}}})
		wantError(t, err, assign.ErrNotBundled, "has that name in the bundle")
	})
}

func TestRead(t *testing.T) {
	dir := write(t, map[string]string{"site.yaml": "muster: {}\n", "web/manifest.yaml": "muster: {}\n", "none/": ""})
	for path, want := range map[string]struct {
		name   string
		bundle bool
	}{
		"site.yaml": {"site", false}, "web": {"web", true}, "web/": {"web", true}, "web/manifest.yaml": {"manifest", false},
	} {
		s := read(t, filepath.Join(dir, path), anything)
		if s.Name != want.name || s.NeedsBundle() != want.bundle || string(s.Text) != "muster: {}\n" {
			t.Errorf("%s: %q, bundle %v, %q", path, s.Name, s.NeedsBundle(), s.Text)
		}
	}
	s, err := assign.ReadSource("-", strings.NewReader("muster: {}"), anything)
	if err != nil || s.Name != "" || string(s.Text) != "muster: {}" {
		t.Errorf("standard input: %+v %v", s, err)
	}
	_, err = assign.ReadSource(filepath.Join(dir, "none"), nil, anything)
	wantError(t, err, assign.ErrNoManifest, "none")
	_, err = assign.ReadSource(filepath.Join(dir, "not there"), nil, anything)
	wantError(t, err, os.ErrNotExist, "not there")
	_, err = assign.ReadSource("-", strings.NewReader("muster: {}"), naming("files/motd"))
	wantError(t, err, assign.ErrNeedsFiles, "files/motd")
	_, err = assign.ReadSource(filepath.Join(dir, "site.yaml"), nil, naming("gone", "lost"))
	wantError(t, err, nil, "site.yaml:1:3")
	wantError(t, err, nil, "site.yaml:2:3")
	wantError(t, err, nil, "taken from the manifest's directory")
	_, err = assign.ReadSource("-", io.LimitReader(endless{}, manifest.DefaultMaxBytes+1), anything)
	wantError(t, err, model.ErrTooLarge, "16 MiB")
	bad := errors.New("bad")
	_, err = assign.ReadSource(filepath.Join(dir, "site.yaml"), nil, func(string, []byte) (manifest.Checked, error) { return manifest.Checked{}, bad })
	wantError(t, err, bad, "bad")
}

// A file that only the node can tell needs the whole directory.
func TestReadLateFiles(t *testing.T) {
	dir := write(t, map[string]string{"site.yaml": "x", "web/manifest.yaml": "x"})
	late := func(name string, _ []byte) (manifest.Checked, error) {
		f := manifest.File{Path: "files/${ Facts.os }", HasExpression: true}
		f.Pos.File, f.Pos.Line = name, 7
		return manifest.Checked{Files: []manifest.File{f}}, nil
	}
	_, err := assign.ReadSource(filepath.Join(dir, "site.yaml"), nil, late)
	wantError(t, err, nil, "site.yaml:7")
	wantError(t, err, nil, "push the directory")
	if s := read(t, filepath.Join(dir, "web"), late); !s.NeedsBundle() {
		t.Error("a directory is no bundle")
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}

	return len(p), nil
}
