package writers_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/host/writers"
	"github.com/musterfleet/muster/testing/actor"
)

// awaitSeen waits until a listener has seen a writer.
func awaitSeen(t *testing.T, l *writers.Listener) (seen []writers.Writer) {
	t.Helper()
	for late := time.After(20 * time.Second); len(seen) == 0; seen = l.Found() {
		select {
		case <-late:
			t.Fatal("nobody was seen")
		case <-time.After(time.Millisecond):
		}
	}

	return seen
}

// made makes a file and returns its path.
func made(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("as wanted"), 0o644); err != nil {
		t.Fatal(err)
	}

	return path
}

func listen(t *testing.T, paths ...string) *writers.Listener {
	t.Helper()
	l, err := writers.Listen(t.Context(), paths)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)

	return l
}

// of returns the expected text of an actor.
func of(t *testing.T, a *actor.Actor, path, how, unit string) writers.Writer {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	name := filepath.Base(exe)

	return writers.Writer{Path: path, PID: a.PID(), Name: name[:min(len(name), 15)], Exe: exe, Unit: unit, UID: os.Geteuid(), How: how}
}

// TestSeenByOpenFiles finds processes that hold a file open for writing, without readers and this process, as
// any user.
func TestSeenByOpenFiles(t *testing.T) {
	t.Parallel()
	path, other := made(t, "motd"), made(t, "other")
	own, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	actor.Play(t, "writer", "hold for reading", path)
	actor.Play(t, "writer", "hold", other)
	l := listen(t, path, filepath.Join(t.TempDir(), "missing"))
	if seen := l.Found(); len(seen) != 0 {
		t.Errorf("before anybody writes: %v", seen)
	}
	a := actor.Play(t, "writer", "hold", path)
	seen := awaitSeen(t, l)
	if len(seen) != 1 || seen[0] != of(t, a, path, writers.Open, seen[0].Unit) {
		t.Errorf("seen %+v", seen)
	}
}

// TestSeenByAnotherPath finds a writer of a file below a link.
func TestSeenByAnotherPath(t *testing.T) {
	t.Parallel()
	path := made(t, "motd")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Dir(path), link); err != nil {
		t.Fatal(err)
	}
	a := actor.Play(t, "writer", "hold", path)
	wanted := filepath.Join(link, "motd")
	if seen := awaitSeen(t, listen(t, wanted)); len(seen) != 1 || seen[0] != of(t, a, wanted, writers.Open, seen[0].Unit) {
		t.Errorf("seen %+v", seen)
	}
}

// TestSeenIsPrintable has a process with a name that is no text.
func TestSeenIsPrintable(t *testing.T) {
	t.Parallel()
	path := made(t, "motd")
	actor.Play(t, "writer", "hold as another", path)
	l := listen(t, path)
	seen := awaitSeen(t, l)
	if len(seen) != 1 || seen[0].Name != "?[31m?root?" {
		t.Errorf("seen %+v", seen)
	}
	if words := l.Seen(); len(words) != 1 || words[0] != seen[0].String() {
		t.Errorf("seen %q", words)
	}
}

func TestListenNowhere(t *testing.T) {
	for _, paths := range [][]string{nil, {filepath.Join(t.TempDir(), "missing", "motd")}} {
		if l, err := writers.Listen(t.Context(), paths); err == nil {
			l.Close()
			t.Errorf("it listens at %v", paths)
		}
	}
}
