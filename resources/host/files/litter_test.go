package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/testing/actor"
	"github.com/musterfleet/muster/testing/hosttest"
)

func begin(t *testing.T, h *files.Disk, o files.RunOptions) {
	t.Helper()
	if err := h.BeginRun(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func end(t *testing.T, h *files.Disk) {
	t.Helper()
	if err := h.EndRun(); err != nil {
		t.Fatal(err)
	}
}

// kill leaves a temporary file in dir, as a run that was killed while it wrote.
func kill(t *testing.T, stateDir, dir string) {
	t.Helper()
	actor.Play(t, "writer", stateDir, filepath.Join(dir, "file")).Kill()
	if found := temporaries(t, dir); len(found) != 1 {
		t.Fatalf("the killed run left %q", found)
	}
}

func temporaries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".muster-*"))
	if err != nil {
		t.Fatal(err)
	}

	return found
}

func TestTheNextRunRemovesWhatAKilledOneLeft(t *testing.T) {
	stateDir, dir := filepath.Join(t.TempDir(), "state"), t.TempDir()
	h := files.New(files.Options{StateDir: stateDir, Log: hosttest.Log(t)})
	kill(t, stateDir, dir)
	random := strings.Repeat("A", 26)
	foreign := []string{".muster-", ".muster-short", ".muster-" + random + ".conf", ".muster-" + strings.ToLower(random)}
	errs := []error{
		os.Mkdir(filepath.Join(dir, ".muster-"+random+"DIR"), 0o755),
		os.Symlink("file", filepath.Join(dir, ".muster-"+random+"LINK")),
	}
	for _, name := range foreign {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}

	// A run inside another run must leave the outer run's files alone.
	begin(t, h, files.RunOptions{Joined: true})
	end(t, h)
	if found := temporaries(t, dir); len(found) != len(foreign)+3 {
		t.Errorf("a joined run left %q", found)
	}

	begin(t, h, files.RunOptions{})
	if found := temporaries(t, dir); len(found) != len(foreign)+1 {
		t.Errorf("the next run left %q", found)
	}
	end(t, h)
	if _, err := os.Stat(filepath.Join(stateDir, "litter")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the record is still there: %v", err)
	}
}

func TestARunRecordsEachDirectoryOnce(t *testing.T) {
	dir := t.TempDir()
	h := hosttest.New(t).Disk
	begin(t, h, files.RunOptions{})
	var want string
	for _, name := range []string{"one", "two\nlines"} {
		below := filepath.Join(dir, name)
		if err := os.Mkdir(below, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"a", "b"} {
			if err := h.Write(t.Context(), filepath.Join(below, file), strings.NewReader(""), hosttest.Attrs(t, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		want += `"` + strings.ReplaceAll(below, "\n", `\n`) + "\"\n"
	}
	got, err := os.ReadFile(filepath.Join(h.StateDir(), "litter"))
	if err != nil || string(got) != want {
		t.Errorf("the record is %q, want %q: %v", got, want, err)
	}
	end(t, h)
}

func TestARecordThatAKillCutShort(t *testing.T) {
	stateDir, dir := t.TempDir(), t.TempDir()
	kill(t, stateDir, dir)
	record, err := os.OpenFile(filepath.Join(stateDir, "litter"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = record.WriteString("garbage\n\"relative\"\n\"/no/such/directory\"\n\"/half")
	if err := errors.Join(err, record.Close()); err != nil {
		t.Fatal(err)
	}
	h := files.New(files.Options{StateDir: stateDir, Log: hosttest.Log(t)})
	begin(t, h, files.RunOptions{})
	end(t, h)
	if found := temporaries(t, dir); len(found) > 0 {
		t.Errorf("the next run left %q", found)
	}
}

func TestRunsAndTheirRecord(t *testing.T) {
	h := hosttest.New(t).Disk
	begin(t, h, files.RunOptions{})
	if err := h.BeginRun(t.Context(), files.RunOptions{}); err == nil {
		t.Error("a second run began within the first")
	}
	end(t, h)
	end(t, h)

	without, dir := files.New(files.Options{}), t.TempDir()
	begin(t, without, files.RunOptions{})
	if err := without.Write(t.Context(), filepath.Join(dir, "file"), strings.NewReader(""), hosttest.Attrs(t, 0o600)); err != nil {
		t.Error(err)
	}
	end(t, without)

	blocked := filepath.Join(dir, "file")
	if err := files.New(files.Options{StateDir: blocked}).BeginRun(t.Context(), files.RunOptions{}); err == nil {
		t.Error("a run began with a file as its state directory")
	}
}

func TestTempDirsOfDeadProcessesAreRemoved(t *testing.T) {
	h := hosttest.New(t).Disk
	mine, err := h.TempDir("bundle")
	if err != nil {
		t.Fatal(err)
	}
	dead := actor.Play(t, "idler")
	dead.Kill()
	theirs := filepath.Join(filepath.Dir(mine), dead.String()+"-bundle-1")
	other := filepath.Join(filepath.Dir(mine), "other")
	if err := errors.Join(os.MkdirAll(filepath.Join(theirs, "below"), 0o700), os.Mkdir(other, 0o700)); err != nil {
		t.Fatal(err)
	}
	begin(t, h, files.RunOptions{})
	end(t, h)
	for path, want := range map[string]bool{mine: true, other: true, theirs: false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if info, err := os.Stat(mine); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others may enter it: %v, %v", info.Mode(), err)
	}
	if _, err := files.New(files.Options{}).TempDir("x"); !errors.Is(err, state.ErrNone) {
		t.Errorf("without a state directory: %v", err)
	}
}

// TestKeptRecord: a process with many runs records a directory once, and finds files that others leave in
// between.
func TestKeptRecord(t *testing.T) {
	stateDir, dir := filepath.Join(t.TempDir(), "state"), t.TempDir()
	h := files.New(files.Options{StateDir: stateDir, Log: hosttest.Log(t)})
	h.KeepLitter()
	record := func() string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(stateDir, "litter"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	run := func() {
		t.Helper()
		begin(t, h, files.RunOptions{})
		if err := h.Write(t.Context(), filepath.Join(dir, "file"), strings.NewReader("x"), files.OwnAttrs(0o600)); err != nil {
			t.Fatal(err)
		}
		end(t, h)
	}
	for range 3 {
		run()
	}
	if lines := strings.Count(record(), "\n"); lines != 1 || !strings.Contains(record(), dir) {
		t.Fatalf("after three runs the record is %q", record())
	}

	kill(t, stateDir, dir) // by another process, which wrote to the record
	run()
	if found := temporaries(t, dir); len(found) != 0 {
		t.Errorf("%v is left of the killed run of another process", found)
	}

	// A run of another process clears the record; this one writes a new one.
	other := files.New(files.Options{StateDir: stateDir, Log: hosttest.Log(t)})
	begin(t, other, files.RunOptions{})
	end(t, other)
	if _, err := os.Stat(filepath.Join(stateDir, "litter")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the record is still there: %v", err)
	}
	run()
	if !strings.Contains(record(), dir) {
		t.Errorf("the record is %q", record())
	}

	// An inner run leaves the record to the outer run.
	begin(t, h, files.RunOptions{Joined: true})
	end(t, h)
	if !strings.Contains(record(), dir) {
		t.Errorf("the record is %q", record())
	}
}

// TestRunsAtTheSameTime share a record, which lists the directories of both until both have ended.
func TestRunsAtTheSameTime(t *testing.T) {
	stateDir, first, second := filepath.Join(t.TempDir(), "state"), t.TempDir(), t.TempDir()
	h := files.New(files.Options{StateDir: stateDir, Log: hosttest.Log(t)})
	h.KeepLitter()
	write := func(dir string) {
		t.Helper()
		if err := h.Write(t.Context(), filepath.Join(dir, "file"), strings.NewReader("x"), files.OwnAttrs(0o600)); err != nil {
			t.Fatal(err)
		}
	}
	begin(t, h, files.RunOptions{})
	write(first)
	begin(t, h, files.RunOptions{})
	end(t, h)
	write(second)
	text, err := os.ReadFile(filepath.Join(stateDir, "litter"))
	if err != nil || !strings.Contains(string(text), first) || !strings.Contains(string(text), second) {
		t.Errorf("the record is %q (%v)", text, err)
	}
	end(t, h)
	end(t, h) // one too many is none of the next
	begin(t, h, files.RunOptions{})
	begin(t, h, files.RunOptions{})
	end(t, h)
	end(t, h)
}
