package state_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/state"

	"golang.org/x/sync/errgroup"
)

func TestStateFormat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// format is what the file holds, nil where there is none.
		format  *string
		write   bool
		unknown bool
		after   string
	}{
		"new":                {nil, true, false, "1\n"},
		"new, only read":     {nil, false, false, ""},
		"cut short":          {new(""), true, false, "1\n"},
		"known":              {new("1\n"), true, false, "1\n"},
		"newer":              {new("2\n"), true, true, "2\n"},
		"newer, only read":   {new("2\n"), false, true, "2\n"},
		"written by another": {new("bolt"), true, true, "bolt"},
		"long":               {new(strings.Repeat("x", 3<<20)), true, true, strings.Repeat("x", 3<<20)},
	} {
		dir := filepath.Join(t.TempDir(), "state")
		path := filepath.Join(dir, "format")
		if c.format != nil {
			if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(path, []byte(*c.format), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		err := state.New(dir, slog.New(slog.DiscardHandler)).OpenState(c.write)
		if errors.Is(err, state.ErrFormat) != c.unknown || (err != nil) != c.unknown {
			t.Errorf("%s: %v", name, err)
		}
		if c.unknown && (!strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "use the version of muster that wrote it")) {
			t.Errorf("%s: no remedy in %v", name, err)
		}
		if err != nil && len(err.Error()) > len(path)+300 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
		if after, _ := os.ReadFile(path); string(after) != c.after {
			t.Errorf("%s: the file holds %.80q, want %.80q", name, after, c.after)
		}
	}
}

// TestStateIsCheckedAgain refuses a directory that was safe before, and a format that another version wrote since.
func TestStateIsCheckedAgain(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "parent")
	dir := filepath.Join(parent, "state")
	d := state.New(dir, slog.New(slog.DiscardHandler))
	if err := d.OpenState(true); err != nil {
		t.Fatal(err)
	}
	for path, c := range map[string]struct {
		mode os.FileMode
		want error
	}{dir: {0o700, paths.ErrUntrusted}, parent: {0o755, paths.ErrUnsafe}} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := d.OpenState(true); !errors.Is(err, c.want) {
			t.Errorf("everybody may write to %s: %v", path, err)
		}
		if err := state.Make(dir); !errors.Is(err, c.want) {
			t.Errorf("everybody may write to %s, Make: %v", path, err)
		}
		if err := errors.Join(os.Chmod(path, c.mode), d.OpenState(true)); err != nil {
			t.Errorf("%s is safe again: %v", path, err)
		}
	}
	path := filepath.Join(dir, "format")
	if err := errors.Join(os.WriteFile(path+".new", []byte("2\n"), 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
	if err := d.OpenState(true); !errors.Is(err, state.ErrFormat) {
		t.Errorf("a newer format: %v", err)
	}
}

// TestFormatThatIsNoFile refuses a pipe or a directory, without waiting for a writer.
func TestFormatThatIsNoFile(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(path string) error{
		"pipe": func(path string) error { return unix.Mkfifo(path, 0o600) },
		"link to a pipe": func(path string) error {
			return errors.Join(unix.Mkfifo(path+".pipe", 0o600), os.Symlink(path+".pipe", path))
		},
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		for _, write := range []bool{true, false} {
			dir := t.TempDir()
			path := filepath.Join(dir, "format")
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			err := state.New(dir, slog.New(slog.DiscardHandler)).OpenState(write)
			if err == nil || err.Error() != "format of the state directory: read "+path+": it is not a regular file: remove it" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestNothingIsWrittenIntoAStateOfAnotherFormat: neither a temporary directory nor
// a lock.
func TestNothingIsWrittenIntoAStateOfAnotherFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "format"), []byte("2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := state.New(dir, slog.New(slog.DiscardHandler)).TempDir("x"); !errors.Is(err, state.ErrFormat) {
		t.Errorf("a temporary directory: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v (%v)", entries, err)
	}
}

// TestManyMakeADirectory tests that processes that start at the same time make a state directory together.
func TestManyMakeADirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for i := range 500 {
		dir := filepath.Join(root, fmt.Sprint(i), "a", "b")
		var all errgroup.Group
		for range 4 {
			all.Go(func() error { return state.Make(dir) })
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}
