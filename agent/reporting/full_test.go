package reporting_test

import (
	"bytes"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/testing/alone"
)

// limitFiles makes the kernel refuse to write beyond a size, as a full disk does.
// That holds for the process, and so for the log that the go command has tests write of
// their files: it is a process of the test alone.
func limitFiles(t *testing.T, size uint64) (lift func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	limited := old
	limited.Cur = size
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limited); err != nil {
		t.Fatal(err)
	}
	lift = func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(lift)

	return lift
}

func TestDiskThatTakesNothing(t *testing.T) {
	if !alone.Run(t) {
		return
	}
	dir := t.TempDir()
	b := open(t, dir, 0)
	add(t, b, 3, report("run", "failed", 100<<10))
	if err := b.Sync(); err != nil {
		t.Fatal(err)
	}
	lift := limitFiles(t, uint64(diskSize(t, dir)))
	add(t, b, 4, report("run", "failed", 200))
	if err := b.Sync(); err == nil {
		t.Error("nobody learns that the reports are not on disk")
	}
	if b.Len() != 7 {
		t.Fatalf("%d wait, want 7", b.Len())
	}
	// An operator must hear of a node with a full disk, so they are handed over
	// from memory.
	var got []uint64
	for len(got) < 5 {
		batch := b.Next(1)
		if len(batch) == 0 {
			t.Fatalf("nothing is handed over after %v", got)
		}
		got = append(got, batch[0].Seq)
		if err := b.Ack(batch[0].Seq); err != nil {
			t.Fatal(err)
		}
	}
	rising(t, got, 1, 5)
	lift()
	add(t, b, 1, report("run", "failed", 200))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, dir, 0)
	rising(t, seqs(drain(t, b)), 6, 8)
}

func TestMemoryIsBoundedWhileTheDiskTakesNothing(t *testing.T) {
	if !alone.Run(t) {
		return
	}
	dir := t.TempDir()
	b := open(t, dir, 0)
	add(t, b, 1, report("transaction", "changed", 300<<10))
	lift := limitFiles(t, uint64(diskSize(t, dir)))
	for range 10 {
		add(t, b, 1, report("run", "stable", 1<<20))
		add(t, b, 1, report("transaction", "failed", 1<<10))
	}
	if n := b.Len(); n > 15 {
		t.Errorf("%d reports of 10 MiB are kept in memory", n)
	}
	lift()
	got := drain(t, b)
	accounted(t, got, 21)
	failed := 0
	for _, r := range got {
		if r.Outcome == "failed" {
			failed++
		}
	}
	if failed != 10 {
		t.Errorf("%d of 10 failures are left, although stable summaries could go", failed)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
}

// TestFullDiskIsLoggedOnce: the outage is logged once although reports are published from memory and
// shorter reports fit. It ends when the report that did not fit is written.
func TestFullDiskIsLoggedOnce(t *testing.T) {
	if !alone.Run(t) {
		return
	}
	var log bytes.Buffer
	dir := t.TempDir()
	b, err := reporting.OpenOutbox(reporting.OutboxOptions{Dir: dir, Dropped: dropped, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	logged := func(failed, over int) {
		t.Helper()
		if f, o := strings.Count(log.String(), "cannot write"), strings.Count(log.String(), "writable again"); f != failed || o != over {
			t.Errorf("logged %d times that it fails, %d that it is over; want %d and %d\n%s", f, o, failed, over, log.String())
		}
	}
	publish := func() {
		t.Helper()
		_ = b.Sync()
		for _, r := range b.Next(100) {
			if err := b.Ack(r.Seq); err != nil {
				t.Fatal(err)
			}
		}
		_ = b.Sync()
	}
	add(t, b, 1, report("run", "failed", 10<<10))
	publish()
	lift := limitFiles(t, uint64(diskSize(t, dir))+1000)
	for range 5 {
		add(t, b, 1, report("run", "failed", 5000))
		publish()
	}
	logged(1, 0)
	add(t, b, 1, report("run", "failed", 100))
	publish()
	logged(1, 0)
	lift()
	add(t, b, 3, report("run", "failed", 3000))
	publish()
	logged(1, 1)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
