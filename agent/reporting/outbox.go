package reporting

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

const (
	// DefaultMaxBytes is the default of OutboxOptions.MaxBytes.
	DefaultMaxBytes = 64 << 20
	// segmentCount is the approximate number of files of a full outbox.
	segmentCount = 64
)

// ErrInUse reports an outbox that another process has open.
var ErrInUse = errors.New("the outbox is in use by another agent")

// OutboxOptions are what Open needs.
type OutboxOptions struct {
	// Dir is the outbox's own directory, created with mode 0700.
	Dir string
	// MaxBytes bounds the files together; zero means DefaultMaxBytes.
	MaxBytes int64
	// Dropped returns the report about dropped ones. It must not call the outbox.
	Dropped func(Lost) model.Report
	Log     *slog.Logger
}

// Outbox keeps reports in order. It is safe for concurrent use, by one process at a time. The caller of an
// unexported method holds mu.
type Outbox struct {
	ready tasks.Signal
	// due is notified when a sync is wanted.
	due tasks.Signal

	log *slog.Logger
	// report returns the report about dropped ones.
	report func(Lost) model.Report

	// mu guards the fields below.
	mu       sync.Mutex
	store    *store
	maxBytes int64
	// waiting are the reports that are not acknowledged, in order; those that the
	// disk did not take come last.
	waiting []entry
	// next is the seq of the next report, acked the last acknowledged one.
	next, acked uint64
	notice      notice
	// published are the reports that the last Next returned.
	published []uint64
	// begun is the time of the last sync.
	begun time.Time
	// unwritable and unsynced track errors of writing and syncing.
	unwritable, unsynced outage
}

// OpenOutbox opens or creates an outbox. It truncates a record that a kill left incomplete: the record
// was never published. It reports damaged reports as dropped and renames their file. It returns
// ErrInUse if another process has the directory open, and ErrFormat, with the segments unchanged, if
// another version of muster wrote them.
func OpenOutbox(o OutboxOptions) (*Outbox, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	s, err := openStore(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open outbox: %w", err)
	}
	b := &Outbox{
		ready: tasks.NewSignal(), due: tasks.NewSignal(), store: s, maxBytes: o.MaxBytes, report: o.Dropped, log: o.Log,
		begun: time.Now(), unwritable: outage{log: o.Log}, unsynced: outage{log: o.Log},
	}
	if err := b.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open outbox: %w", err), s.close())
	}
	b.flush()
	b.ready.Notify()

	return b, nil
}

// Append assigns a seq to a report and writes it. The report is durable, and Next returns it, after
// Sync or SyncSoon; while Run runs, further reports cause a sync after one second. If the disk fails,
// the report stays in bounded memory. Append returns an error if the report cannot be encoded.
func (b *Outbox) Append(r model.Report) (seq uint64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.Seq = b.next
	rec, err := encode(&r)
	if err != nil {
		return 0, err
	}
	b.next++
	b.waiting = append(b.waiting, entry{seq: r.Seq, class: classOf(&r), size: rec.size(), memory: &rec})
	b.flush()
	b.trim()
	if time.Since(b.begun) > syncEvery {
		b.SyncSoon()
	}

	return r.Seq, nil
}

// Run makes reports durable as SyncSoon asks, until ctx ends.
func (b *Outbox) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.due:
			_ = b.Sync() // what fails stays in memory, and is logged
		}
	}
}

// SyncSoon requests a sync by Run and returns at once.
func (b *Outbox) SyncSoon() { b.due.Notify() }

// Sync makes all reports durable and notifies Ready. If the disk fails, the reports stay in memory,
// Next returns them from there, and Sync returns an error and logs the start of the failure. Other
// goroutines may append during a sync.
func (b *Outbox) Sync() error {
	b.mu.Lock()
	b.begun = time.Now()
	b.flush()
	tails := b.store.unsynced()
	b.mu.Unlock()
	for i := range tails {
		tails[i].err = tails[i].segment.file.Sync() // even if the file was closed in the meantime
	}
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.endSync(tails)
}

// Next returns the oldest waiting reports, at most max of them, without removing them. It
// returns none if no report waits or is durable yet.
func (b *Outbox) Next(max int) []model.Report {
	b.mu.Lock()
	defer b.mu.Unlock()

	reports, damaged := b.read(max)
	if len(damaged) > 0 {
		b.log.Error("waiting reports damaged", "reports", len(damaged), "from", damaged[0].seq, "to", damaged[len(damaged)-1].seq)
		b.drop(func(e entry) bool {
			_, found := slices.BinarySearchFunc(damaged, e, bySeq)
			return found
		})
	}
	b.published = b.published[:0]
	for _, r := range reports {
		b.published = append(b.published, r.Seq)
	}

	return b.withEvent(reports, max)
}

// Ack removes the published reports up to and including seq.
func (b *Outbox) Ack(seq uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq >= b.next {
		return nil
	}

	return b.ack(seq)
}

// Drop removes the reports up to seq, which no server accepts. The event about dropped reports covers
// seq.
func (b *Outbox) Drop(seq uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq <= b.acked || seq >= b.next {
		return nil
	}
	b.published = nil
	b.drop(func(e entry) bool { return e.seq == seq })

	return b.ack(seq)
}

// SetMaxBytes changes the bound, from the next report on.
func (b *Outbox) SetMaxBytes(max int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.maxBytes = max
}

// Len returns how many reports wait, those about dropped ones included.
func (b *Outbox) Len() int { return b.Stats().Reports }

// Ready receives a value when there may be reports to publish.
func (b *Outbox) Ready() tasks.Signal { return b.ready }

// Close makes all reports durable and closes the files.
func (b *Outbox) Close() error {
	err := b.Sync()
	b.mu.Lock()
	defer b.mu.Unlock()

	return errors.Join(err, b.store.close())
}

// syncEvery is how old a report of a long run may become before it is synced and
// published.
const syncEvery = time.Second

// endSync records the result of a sync and notifies Ready. It ignores errors of segments that were
// dropped, or that another sync made durable, in the interval: their files may be removed.
func (b *Outbox) endSync(all []syncing) (err error) {
	defer b.ready.Notify()
	for _, done := range all {
		if done.err == nil {
			done.segment.durable = max(done.segment.durable, done.last)
		} else if !done.segment.dropped && done.segment.durable < done.last {
			err = errors.Join(err, done.err)
		}
	}
	b.unsynced.note(err, "cannot sync the outbox; reports wait, will retry")
	if b.unwritable.failing {
		err = errors.Join(err, fmt.Errorf("the disk takes nothing, %d reports are in memory", len(b.waiting)-b.written()))
	}
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}

	return nil
}

type syncing struct {
	segment *segment
	last    uint64
	err     error
}

func (s *store) unsynced() (all []syncing) {
	for _, tail := range s.tails {
		if tail != nil && tail.last != tail.durable {
			all = append(all, syncing{segment: tail, last: tail.last})
		}
	}

	return all
}

// Stats are figures of an outbox.
type Stats struct {
	// Reports counts the waiting reports, including events about dropped reports.
	Reports int
	// Bytes is what the files take, and the reports in memory while the disk takes
	// none; MaxBytes bounds the files.
	Bytes, MaxBytes int64
	// Dropped counts the reports that were dropped or found missing since Open.
	Dropped uint64
}

// Stats returns the figures of now.
func (b *Outbox) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()

	s := Stats{Reports: len(b.waiting) + b.notice.count(), Bytes: b.store.bytes(), MaxBytes: b.maxBytes, Dropped: b.notice.dropped}
	for _, e := range b.waiting[b.written():] {
		s.Bytes += e.size
	}

	return s
}

// outage tracks disk errors; it logs the first error and the recovery.
type outage struct {
	log *slog.Logger
	// failing reports whether the last write failed; logged whether the log contains the failure.
	failing, logged bool
	// missing is the number of bytes to write before the outage is over: an empty or smaller write
	// succeeds on a full disk also.
	missing int64
}

func (o *outage) failed(size int64) { o.missing = max(o.missing, size) }

func (o *outage) wrote(size int64) { o.missing = max(0, o.missing-size) }

// note records the result of a disk operation, nil for success; event is the log message for an error.
func (o *outage) note(err error, event string) {
	switch o.failing = err != nil; {
	case o.failing && !o.logged:
		o.logged = true
		o.log.Error(event, "error", err)
	case !o.failing && o.logged && o.missing == 0:
		o.logged = false
		o.log.Info("outbox writable again")
	}
}
