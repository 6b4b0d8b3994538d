package reporting_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/agent/reporting"
)

func TestUnknownFormat(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "00000000000000000001.seg")
	if err := os.WriteFile(file, []byte("muster1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := reporting.OpenOutbox(reporting.OutboxOptions{Dir: dir, Dropped: dropped, Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, reporting.ErrFormat) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "publish its reports, then move ") {
		t.Errorf("got %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 || entries[0].Name() != filepath.Base(file) || entries[1].Name() != "lock" {
		t.Errorf("%v is in the directory, want the file and the lock", entries)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "muster1\n" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

// TestDamagedSegmentIsKeptAside: once its reports are published.
func TestDamagedSegmentIsKeptAside(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, 64<<10)
	add(t, b, 20, report("transaction", "changed", 500))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	segment := filepath.Join(dir, "00000000000000000001.log")
	data, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/4] ^= 1
	if err := os.WriteFile(segment, data, 0o600); err != nil {
		t.Fatal(err)
	}
	b = open(t, dir, 64<<10)
	got := drain(t, b)
	accounted(t, got, 20)
	if len(got) != 20 {
		t.Errorf("%v came, want all but one and the event about it", seqs(got))
	}
	if aside, err := os.ReadFile(filepath.Join(dir, "damaged")); err != nil || string(aside) != string(data) {
		t.Errorf("%d of %d bytes are kept aside, %v", len(aside), len(data), err)
	}
}

// TestOneFileLosesItsEnd: a power failure may take reports from one of the files
// that are written to, and leave later ones in the other.
func TestOneFileLosesItsEnd(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, 0)
	add(t, b, 2, report("transaction", "changed", 50))
	safe, err := os.Stat(filepath.Join(dir, "00000000000000000001.log"))
	if err != nil {
		t.Fatal(err)
	}
	add(t, b, 2, report("transaction", "changed", 50))
	add(t, b, 1, report("run", "stable", 50))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "00000000000000000001.log"), safe.Size()); err != nil {
		t.Fatal(err)
	}
	b = open(t, dir, 0)
	add(t, b, 1, report("transaction", "changed", 50))
	accounted(t, drain(t, b), 6)
}

// TestNoticeThatCannotBeWritten: reports are still accepted, no file is removed, and the next event
// covers the dropped reports, also after a kill.
func TestNoticeThatCannotBeWritten(t *testing.T) {
	const most = 64 << 10
	dir := t.TempDir()
	b := open(t, dir, most)
	obstacle := filepath.Join(dir, "dropped.json.tmp", "obstacle")
	if err := os.MkdirAll(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	add(t, b, 200, report("transaction", "changed", 500))
	if size := diskSize(t, dir); size < most {
		t.Errorf("%d bytes are left, although the notice is not written", size)
	}
	if err := b.Sync(); err == nil {
		t.Error("nobody learns that the notice is not written")
	}
	if got := b.Next(20); len(got) != 20 || got[0].Outcome != "dropped" {
		t.Errorf("%v are published", seqs(got))
	}
	killed := t.TempDir()
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, killed} {
		if err := os.RemoveAll(filepath.Join(dir, "dropped.json.tmp")); err != nil {
			t.Fatal(err)
		}
	}
	accounted(t, drain(t, open(t, killed, most)), 200)
	accounted(t, drain(t, b), 200)
	if size := diskSize(t, dir); size > most {
		t.Errorf("%d bytes are left once it is written", size)
	}
}
