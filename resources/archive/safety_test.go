package archive_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/webtest"
)

// TestExtractNeedsNoPrograms has a machine without tar, gzip and unzip.
func TestExtractNeedsNoPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	packed := packTar(t, regular("app/tool", "x", 0o755))
	for extension, content := range map[string]string{".tar": packed, ".tar.gz": zipped(t, packed), ".zip": packZip(t, file{name: "app/tool", content: "x", mode: 0o755})} {
		x, err := unpack(t, extension, content, func(x *trial) {
			if ok, _, err := x.provider.IsManageable(nil, x.spec); !ok {
				t.Errorf("%s: %v", extension, err)
			}
		})
		if err != nil || hosttest.Snapshot(t, x.spec.ExtractParent)["app/tool"].Digest != sum("x") {
			t.Errorf("%s: %v", extension, err)
		}
	}
}

// TestExtractStaysInside exchanges a directory of the target with a link that leads out of the
// target, continuously, while the archive is extracted.
func TestExtractStaysInside(t *testing.T) {
	var entries []entry
	var members []file
	for i := range 400 {
		name := fmt.Sprintf("sub/f%03d", i)
		entries, members = append(entries, regular(name, "x", 0o644)), append(members, file{name: name, content: "x", mode: 0o644})
	}
	packed := packTar(t, entries...)
	for extension, content := range map[string]string{".tar": packed, ".tar.gz": zipped(t, packed), ".zip": packZip(t, members...)} {
		for range 5 {
			stop := func() int { return 0 }
			x, _ := unpack(t, extension, content, func(x *trial) {
				target := x.spec.ExtractParent
				check(t, errors.Join(os.MkdirAll(filepath.Join(target, "sub"), 0o755), os.Mkdir(filepath.Join(x.dir, "outside"), 0o755), os.Symlink("../outside", filepath.Join(target, "out"))))
				stop = hosttest.Swap(t, filepath.Join(target, "sub"), filepath.Join(target, "out"))
			})
			stop()
			if left, err := os.ReadDir(filepath.Join(x.dir, "outside")); err != nil || len(left) > 0 {
				t.Errorf("%s: %d files were written outside: %v", extension, len(left), err)
			}
		}
	}
}

// endless answers with content that does not end.
func endless(pause time.Duration, piece string, headers ...string) webtest.Answer {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, piece); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-r.Context().Done():
			case <-time.After(pause):
			}
		}
	}
}

// TestDownloadIsBounded has servers that send more than max_size, with and without a length.
func TestDownloadIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		answer webtest.Answer
		says   string
	}{
		"it says how much":  {endless(0, strings.Repeat("x", 4096), "Content-Length", "5000000"), "the server offers 5000000 bytes"},
		"it does not":       {endless(0, strings.Repeat("x", 4096)), "more than max_size"},
		"it lies":           {said("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n" + strings.Repeat("x", 4096)), ""},
		"compressed, a lot": {endless(0, strings.Repeat("x", 4096), "Content-Encoding", "gzip"), "more than max_size"},
	} {
		x := newTrial(t, webtest.Start(t))
		x.spec.MaxSize = 1_000_000
		x.server.Put("/a.tar.gz", webtest.Text("x"))
		x.server.Next("/a.tar.gz", slices.Repeat([]webtest.Answer{c.answer}, 9)...)
		err := x.download()
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.says == "":
			continue
		case !errors.Is(err, files.ErrTooLarge) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "1MB"):
			t.Errorf("%s: the error is %v", name, err)
		}
		x.holds("")
		if n := len(x.server.Requests()); n != 1 {
			t.Errorf("%s: there were %d requests", name, n)
		}
	}
	x := newTrial(t, webtest.Start(t))
	x.spec.MaxSize = model.Size(len(content("1")))
	x.server.Put("/a.tar.gz", webtest.Text(content("1")))
	check(t, x.download())
	x.holds(content("1"))
}

// TestDrip has a server that sends a little now and then, without end.
func TestDrip(t *testing.T) {
	for name, more := range map[string][]string{"without a length": nil, "with one": {"Content-Length", "100000000", "ETag", `"1"`}} {
		x := newTrial(t, webtest.Start(t))
		x.server.Put("/a.tar.gz", webtest.Text(content("1")))
		x.server.Next("/a.tar.gz", slices.Repeat([]webtest.Answer{endless(10*time.Millisecond, "x", more...)}, 99)...)
		x.spec.Timeout = model.Duration(500 * time.Millisecond)
		began := time.Now()
		err := x.download()
		if err == nil || !strings.Contains(err.Error(), "timed out after 500ms with less than 1 KiB a second") {
			t.Errorf("%s: the error is %v", name, err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: it took %s", name, took)
		}
		x.holds("")
	}
}

// TestHugeHeaders has a server that sends endless headers.
func TestHugeHeaders(t *testing.T) {
	x := newTrial(t, webtest.Start(t))
	x.server.Put("/a.tar.gz", webtest.Text("x"))
	x.server.Next("/a.tar.gz", slices.Repeat([]webtest.Answer{said("HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Long: "+strings.Repeat("x", 1000)+"\r\n", 2000) + "\r\n")}, 9)...)
	if err := x.download(); err == nil || !strings.Contains(err.Error(), "headers exceeded") {
		t.Errorf("the error is %v", err)
	}
	x.holds("")
}
