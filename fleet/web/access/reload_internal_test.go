package access

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestReplacedFilesAreReadAgain, also with the same size and time, as from a tool that preserves times.
func TestReplacedFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, other := filepath.Join(dir, "tokens"), filepath.Join(dir, "other")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write(path, "one")
	write(other, "two")
	r, err := load(slog.New(slog.DiscardHandler), func() (string, error) {
		data, err := os.ReadFile(path)
		return string(data), err
	}, path)
	if err != nil || r.get() != "one" {
		t.Fatal(r.get(), err)
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	r.next = time.Time{}
	if got := r.get(); got != "two" {
		t.Errorf("the file that replaced it is read as %q", got)
	}
}
