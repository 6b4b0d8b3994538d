package host_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
)

// accountHost has account tables with root only.
func accountHost(t *testing.T) (h *host.Host, dir string) {
	t.Helper()
	dir = t.TempDir()
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "passwd"), []byte("root:x:0:0:root:/:/bin/sh\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "group"), []byte("root:x:0:\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	h = host.New(host.Options{})
	h.Accounts = host.NewAccounts(dir, command.New(nil), slog.New(slog.DiscardHandler))

	return h, dir
}

func TestARunReadsTheAccountsAgain(t *testing.T) {
	h, dir := accountHost(t)
	if _, err := h.UID(t.Context(), "new"); !errors.Is(err, host.ErrNoAccount) {
		t.Fatalf("it is known too early: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "passwd"), []byte("new:x:1:1::/:/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := h.BeginRun(t.Context(), files.RunOptions{}); err != nil {
		t.Fatal(err)
	}
	if id, err := h.UID(t.Context(), "new"); err != nil || id != 1 {
		t.Errorf("a new run did not read it again: %d, %v", id, err)
	}
}

// TestAccountsOfAFileThatIsWritten are known at once.
func TestAccountsOfAFileThatIsWritten(t *testing.T) {
	h, dir := accountHost(t)
	for _, c := range []struct {
		get        func(context.Context, string) (uint32, error)
		file, line string
	}{{h.UID, "passwd", "new:x:7:7::/:/bin/sh\n"}, {h.GID, "group", "new:x:7:\n"}} {
		if _, err := c.get(t.Context(), "new"); !errors.Is(err, host.ErrNoAccount) {
			t.Fatalf("%s: %v", c.file, err)
		}
		if err := h.Write(t.Context(), filepath.Join(dir, c.file), strings.NewReader(c.line), files.OwnAttrs(0o644)); err != nil {
			t.Fatal(err)
		}
		if id, err := c.get(t.Context(), "new"); err != nil || id != 7 {
			t.Errorf("%s: %d, %v", c.file, id, err)
		}
	}
}
