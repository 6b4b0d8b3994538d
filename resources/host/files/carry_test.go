package files_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestWriteKeepsUserAttributes replaces the content of a file that has attributes.
func TestWriteKeepsUserAttributes(t *testing.T) {
	t.Parallel()
	h, path := hosttest.New(t), t.TempDir()+"/f"
	write := func(content string) {
		t.Helper()
		if err := h.Write(t.Context(), path, strings.NewReader(content), hosttest.Attrs(t, 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	for name, value := range map[string]string{"user.origin": "here", "user.empty": "", "user.large": strings.Repeat("x", 2000)} {
		if err := unix.Setxattr(path, name, []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	write("new")
	hasAttribute(t, path, "user.origin", "here")
	hasAttribute(t, path, "user.empty", "")
	hasAttribute(t, path, "user.large", strings.Repeat("x", 2000))
}

// hasAttribute fails unless a file has an extended attribute.
func hasAttribute(t *testing.T, path, name, want string) {
	t.Helper()
	value := make([]byte, 64<<10)
	n, err := unix.Lgetxattr(path, name, value)
	if err != nil {
		t.Errorf("%s of %s: %v", name, path, err)
	} else if got := string(value[:n]); got != want {
		t.Errorf("%s of %s is %q, not %q", name, path, got, want)
	}
}

// TestLabelFails writes a file although its default label is unknown.
func TestLabelFails(t *testing.T) {
	t.Parallel()
	disk := files.New(files.Options{Label: func(context.Context, string) (string, error) { return "", errors.New("no policy") }})
	path := t.TempDir() + "/f"
	if err := disk.Write(t.Context(), path, strings.NewReader("x"), hosttest.Attrs(t, 0o600)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
