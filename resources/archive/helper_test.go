package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/archive"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/webtest"
)

// entry is one of an archive.
type entry struct {
	header  tar.Header
	content string
}

func regular(name, content string, mode int64) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}, content}
}

func packTar(t testing.TB, entries ...entry) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		check(t, w.WriteHeader(&e.header))
		_, err := io.WriteString(w, e.content)
		check(t, err)
	}
	check(t, w.Close())

	return b.String()
}

func zipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	check(t, errors.Join(err, w.Close()))

	return b.String()
}

// trial is one archive at DIR/a.tar.gz and the server it comes from. Make it with newTrial.
type trial struct {
	t        testing.TB
	server   *webtest.Server
	provider archive.HTTP
	spec     *archive.Spec
	env      resource.Env
	dir      string
	log      bytes.Buffer
	// arrived are the checksums that were complete.
	arrived []string
}

func newTrial(t testing.TB, server *webtest.Server) *trial {
	t.Helper()
	x := &trial{t: t, server: server, dir: t.TempDir()}
	x.provider = archive.NewHTTP(archive.HTTPOptions{Backoff: time.Millisecond, Progress: time.Nanosecond})
	x.env = resource.Env{Host: hosttest.New(t), Log: slog.New(slog.NewTextHandler(&x.log, nil))}
	x.spec = &archive.Spec{MaxSize: archive.DefaultMaxSize, URL: server.URL + "/a.tar.gz"}
	x.spec.Name = filepath.Join(x.dir, "a.tar.gz")
	x.spec.Owner, x.spec.Group = strconv.Itoa(os.Geteuid()), strconv.Itoa(os.Getegid())
	x.spec.Timeout = model.Duration(time.Minute)

	return x
}

func (x *trial) download() error {
	attrs := files.Attrs{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Mode: 0o640}

	return x.provider.Download(x.t.Context(), x.env, x.spec, attrs, func(checksum string) error {
		if err := x.spec.CheckSum(checksum); err != nil {
			return err
		}
		x.arrived = append(x.arrived, checksum)
		return nil
	})
}

// holds fails unless the archive is the only file in the directory; no content means an empty
// directory.
func (x *trial) holds(content string) {
	x.t.Helper()
	entries, err := os.ReadDir(x.dir)
	check(x.t, err)
	if content == "" {
		if len(entries) > 0 || len(x.arrived) > 0 {
			x.t.Errorf("something is left: %v, arrived %v", entries, x.arrived)
		}
		return
	}
	got, err := os.ReadFile(x.spec.Name)
	check(x.t, err)
	if string(got) != content || len(entries) != 1 || len(x.arrived) != 1 || x.arrived[0] != sum(content) {
		x.t.Errorf("it holds %d bytes, not the %d expected; there are %v; arrived %v", len(got), len(content), entries, x.arrived)
	}
}

// ranges returns the requested ranges, one for each request.
func (x *trial) ranges() []string {
	var out []string
	for _, r := range x.server.Requests() {
		out = append(out, r.Header.Get("Range"))
	}

	return out
}
