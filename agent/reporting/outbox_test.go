package reporting_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/model"
)

func open(t *testing.T, dir string, max int64) *reporting.Outbox {
	t.Helper()
	b, err := reporting.OpenOutbox(reporting.OutboxOptions{Dir: dir, MaxBytes: max, Dropped: dropped, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })

	return b
}

func dropped(lost reporting.Lost) model.Report {
	doc, _ := json.Marshal(lost)

	return model.Report{ID: fmt.Sprint("d", lost), Kind: model.KindNode, Outcome: "dropped", Data: doc}
}

func report(kind, outcome string, size int) model.Report {
	doc, _ := json.Marshal(strings.Repeat("x", size))

	return model.Report{ID: kind + outcome, Kind: kind, Outcome: model.Outcome(outcome), Data: doc}
}

func add(t *testing.T, b *reporting.Outbox, n int, r model.Report) {
	t.Helper()
	for range n {
		if _, err := b.Append(r); err != nil {
			t.Fatal(err)
		}
	}
}

// drain takes everything out, in batches.
func drain(t *testing.T, b *reporting.Outbox) []model.Report {
	t.Helper()
	if err := b.Sync(); err != nil {
		t.Fatal(err)
	}
	var all []model.Report
	for {
		batch := b.Next(7)
		if len(batch) == 0 {
			return all
		}
		all = append(all, batch...)
		if err := b.Ack(batch[len(batch)-1].Seq); err != nil {
			t.Fatal(err)
		}
	}
}

func seqs(reports []model.Report) []uint64 {
	var out []uint64
	for _, r := range reports {
		out = append(out, r.Seq)
	}

	return out
}

// rising fails unless the numbers are from..to without a gap.
func rising(t *testing.T, got []uint64, from, to uint64) {
	t.Helper()
	var want []uint64
	for i := from; i <= to; i++ {
		want = append(want, i)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %d to %d", got, from, to)
	}
}

func TestOldestFirstAndDeletedAfterTheAck(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, 1<<20)
	add(t, b, 10, report("transaction", "changed", 100))
	if got := b.Next(10); len(got) != 0 {
		t.Fatalf("%d reports are handed over before they are durable", len(got))
	}
	add(t, b, 40, report("transaction", "changed", 3000))
	if b.Len() != 50 {
		t.Fatalf("%d wait, want 50", b.Len())
	}
	rising(t, seqs(drain(t, b)), 1, 50)
	if b.Len() != 0 {
		t.Fatalf("%d wait after all was acknowledged", b.Len())
	}
	if size := diskSize(t, dir); size > 70_000 {
		t.Fatalf("%d bytes are left on disk", size)
	}
}

func diskSize(t *testing.T, dir string) (size int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}

	return size
}

func TestNumbersGoOnAfterARestart(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, 0)
	add(t, b, 3, report("run", "stable", 10))
	rising(t, seqs(drain(t, b)), 1, 3)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, dir, 0)
	if b.Len() != 0 || len(b.Next(5)) != 0 {
		t.Fatal("what was acknowledged is handed over again")
	}
	add(t, b, 2, report("run", "failed", 10))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, dir, 0)
	rising(t, seqs(drain(t, b)), 4, 5)
}

func TestHalfAcknowledgedSegment(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, 0)
	add(t, b, 10, report("run", "failed", 10))
	if err := b.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := b.Ack(4); err != nil {
		t.Fatal(err)
	}
	if b.Len() != 6 {
		t.Fatalf("%d wait, want 6", b.Len())
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, dir, 0)
	if b.Len() != 6 {
		t.Fatalf("%d wait after a restart, want 6", b.Len())
	}
	rising(t, seqs(drain(t, b)), 5, 10)
}

// TestKillAtEveryByte truncates the file at each byte, as a kill may do: all synced reports remain, no
// report is invented, and the numbers continue.
func TestKillAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, 0)
	add(t, b, 3, report("run", "changed", 20))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	safe := diskSize(t, dir)
	b = open(t, dir, 0)
	add(t, b, 2, report("run", "failed", 20))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	segment := filepath.Join(dir, "00000000000000000001.log")
	whole, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	cursor := diskSize(t, dir) - int64(len(whole))
	for cut := int(safe - cursor); cut <= len(whole); cut++ {
		other := t.TempDir()
		if err := os.WriteFile(filepath.Join(other, filepath.Base(segment)), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		b := open(t, other, 0)
		n := uint64(b.Len())
		if n < 3 {
			t.Fatalf("cut at %d: %d of 3 synced reports are left", cut, n)
		}
		add(t, b, 1, report("run", "changed", 1))
		rising(t, seqs(drain(t, b)), 1, n+1)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamagedCursorDeliversAgain(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, 0)
	add(t, b, 3, report("run", "changed", 20))
	drain(t, b)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cursor"), []byte("not a cursor"), 0o600); err != nil {
		t.Fatal(err)
	}
	b = open(t, dir, 0)
	add(t, b, 1, report("run", "changed", 20))
	rising(t, seqs(drain(t, b)), 1, 4)
}

func TestDamageInTheMiddleIsReported(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, 1<<20)
	add(t, b, 60, report("transaction", "changed", 5000))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	segment := filepath.Join(dir, "00000000000000000001.log")
	data, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(segment, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, reopen := range []bool{true, false} {
		if reopen {
			b = open(t, dir, 1<<20)
		}
		got := drain(t, b)
		if !reopen {
			if len(got) != 0 {
				t.Fatalf("%d reports come twice", len(got))
			}
			return
		}
		accounted(t, got, 60)
	}
}

// accounted fails the test unless each number up to the last is present or reported as dropped once, with
// right counts.
func accounted(t *testing.T, got []model.Report, last uint64) {
	t.Helper()
	have := map[uint64]int{}
	var order []uint64
	for _, r := range got {
		if r.Outcome != "dropped" {
			have[r.Seq]++
			order = append(order, r.Seq)
			continue
		}
		var d reporting.Lost
		if err := json.Unmarshal(r.Data, &d); err != nil {
			t.Fatal(err)
		}
		if len(d.Ranges) == 0 || r.Seq != d.Ranges[0].From {
			t.Errorf("event %d reports %v", r.Seq, d)
		}
		for _, in := range d.Ranges {
			for i := in.From; i <= in.To; i++ {
				have[i]++
				d.Reports--
			}
		}
		if d.Reports != 0 {
			t.Errorf("event %d has %d reports more than it names", r.Seq, d.Reports)
		}
	}
	for i := uint64(1); i <= last; i++ {
		if have[i] != 1 {
			t.Fatalf("report %d is there %d times", i, have[i])
		}
	}
	if !slices.IsSorted(order) {
		t.Fatalf("not in order: %v", order)
	}
}

func TestDropsStableSummariesFirst(t *testing.T) {
	dir := t.TempDir()
	const max = 256 << 10
	b := open(t, dir, max)
	for range 60 {
		add(t, b, 20, report("run", "stable", 500))
		add(t, b, 1, report("transaction", "changed", 500))
	}
	if err := b.Sync(); err != nil {
		t.Fatal(err)
	}
	if size := diskSize(t, dir); size > max+max/8 {
		t.Fatalf("%d bytes on disk, at most about %d are allowed", size, max)
	}
	got := drain(t, b)
	accounted(t, got, 60*21)
	changed := 0
	for _, r := range got {
		if r.Outcome == "changed" {
			changed++
		}
	}
	if changed != 60 {
		t.Errorf("%d of 60 changes are left, although only stable summaries had to go", changed)
	}
}

func TestDropsTheOldestWhenNothingElseHelps(t *testing.T) {
	dir := t.TempDir()
	const max = 256 << 10
	b := open(t, dir, max)
	add(t, b, 3000, report("transaction", "changed", 500))
	if size := diskSize(t, dir); size > max+max/8 {
		t.Fatalf("%d bytes on disk, at most about %d are allowed", size, max)
	}
	got := drain(t, b)
	accounted(t, got, 3000)
	if newest := got[len(got)-1]; newest.Outcome == "dropped" && got[len(got)-2].Outcome == "dropped" {
		t.Errorf("nothing but reports about dropped ones is left at the end")
	}
	if len(got) < 100 {
		t.Errorf("only %d reports are left in %d bytes", len(got), max)
	}
}

func TestTrimWithHalfAcknowledged(t *testing.T) {
	b := open(t, t.TempDir(), 256<<10)
	add(t, b, 30, report("run", "stable", 500))
	if err := b.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := b.Ack(5); err != nil {
		t.Fatal(err)
	}
	add(t, b, 1000, report("run", "stable", 500))
	got := drain(t, b)
	for _, r := range got {
		if r.Seq <= 5 {
			t.Fatalf("report %d comes again", r.Seq)
		}
	}
	if b.Len() != 0 {
		t.Errorf("%d wait after all was taken", b.Len())
	}
}

func TestTooLargeReport(t *testing.T) {
	b := open(t, t.TempDir(), 0)
	if _, err := b.Append(report("run", "changed", 17<<20)); err == nil {
		t.Fatal("a report of 17 MiB is taken")
	}
	add(t, b, 1, report("run", "changed", 1))
	rising(t, seqs(drain(t, b)), 1, 1)
}

func TestOpenErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := reporting.OpenOutbox(reporting.OutboxOptions{Dir: filepath.Join(file, "outbox"), Dropped: dropped, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "open outbox") {
		t.Errorf("got %v", err)
	}
	if !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("the cause is not wrapped: %v", err)
	}
}

func TestDamageWhileItIsOpen(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, 1<<20)
	add(t, b, 60, report("transaction", "changed", 5000))
	if err := b.Sync(); err != nil {
		t.Fatal(err)
	}
	first := b.Next(2)
	if err := b.Ack(first[1].Seq); err != nil {
		t.Fatal(err)
	}
	segment := filepath.Join(dir, "00000000000000000001.log")
	data, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	data[20000] ^= 1
	if err := os.WriteFile(segment, data, 0o600); err != nil {
		t.Fatal(err)
	}
	accounted(t, append(first, drain(t, b)...), 60)

	// And the current segment.
	add(t, b, 2, report("run", "failed", 100))
	if err := b.Sync(); err != nil {
		t.Fatal(err)
	}
	waiting := b.Len()
	entries, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	last := entries[len(entries)-1]
	if data, err = os.ReadFile(last); err != nil {
		t.Fatal(err)
	}
	data[len(data)-150] ^= 1
	if err := os.WriteFile(last, data, 0o600); err != nil {
		t.Fatal(err)
	}
	got := drain(t, b)
	if len(got) == 0 || got[len(got)-1].Outcome != "dropped" || waiting != 2 {
		t.Errorf("%d waited, %v came", waiting, seqs(got))
	}
	add(t, b, 1, report("run", "failed", 100))
	if got := drain(t, b); len(got) != 1 {
		t.Errorf("after the damage %d reports came, want 1", len(got))
	}
}

func TestWrittenAndHandedOverAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, 1<<20)
	const reports = 3000
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() {
		for i := range reports {
			if _, err := b.Append(report("transaction", "changed", 100+i%1000)); err != nil {
				t.Error(err)
			}
			if i%50 == 0 {
				if err := b.Sync(); err != nil {
					t.Error(err)
				}
			}
		}
		if err := b.Sync(); err != nil {
			t.Error(err)
		}
	})
	var got []model.Report
	for len(got) == 0 || got[len(got)-1].Seq < reports {
		batch := b.Next(64)
		if len(batch) == 0 {
			<-b.Ready()
			continue
		}
		got = append(got, batch...)
		if err := b.Ack(batch[len(batch)-1].Seq); err != nil {
			t.Fatal(err)
		}
	}
	accounted(t, got, reports)
}

func TestSmallerBoundHoldsAtOnce(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, 4<<20)
	add(t, b, 2000, report("run", "stable", 1000))
	b.SetMaxBytes(1 << 20)
	add(t, b, 1, report("run", "failed", 10))
	if size := diskSize(t, dir); size > 1<<20 {
		t.Errorf("%d bytes on disk", size)
	}
	accounted(t, drain(t, b), 2001)
}

func TestInUse(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, 0)
	if _, err := reporting.OpenOutbox(reporting.OutboxOptions{Dir: dir, Dropped: dropped, Log: slog.New(slog.DiscardHandler)}); !errors.Is(err, reporting.ErrInUse) {
		t.Errorf("got %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir, 0)
}

// TestACopyOfTheLockHoldsNothing: a process that is just being started has a copy of each
// descriptor until it runs its program.
func TestACopyOfTheLockHoldsNothing(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, 0)
	copied := false
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range descriptors {
		if path, _ := os.Readlink("/proc/self/fd/" + d.Name()); path != filepath.Join(dir, "lock") {
			continue
		}
		fd, err := strconv.Atoi(d.Name())
		if err != nil {
			t.Fatal(err)
		}
		other, err := unix.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(other) }()
		copied = true
		break
	}
	if !copied {
		t.Fatal("no descriptor has the lock")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir, 0)
}
