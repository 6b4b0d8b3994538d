package reporting

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

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
	// Log gets the errors of the disk.
	Log *slog.Logger
}

// Outbox keeps reports in order. It is safe for concurrent use, by one process
// at a time. Its queue has the reports, its syncer makes them durable.
type Outbox struct {
	ready tasks.Signal
	sync  *syncer

	mu sync.Mutex
	// mu guards queue.
	queue *queue
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
	b := &Outbox{ready: tasks.NewSignal(), sync: newSyncer(o.Log)}
	b.queue = &queue{store: s, maxBytes: o.MaxBytes, dropped: o.Dropped, ready: b.ready, unwritable: outage{log: o.Log}, log: o.Log}
	if err := b.queue.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open outbox: %w", err), s.close())
	}
	b.queue.flush()
	b.ready.Notify()

	return b, nil
}

// Append assigns a seq to a report and writes it. The report is durable, and Next returns it, after
// Sync or SyncSoon; while Run runs, further reports cause a sync after one second. If the disk fails,
// the report stays in bounded memory. Append returns an error if the report cannot be encoded.
func (b *Outbox) Append(r model.Report) (seq uint64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq, err = b.queue.append(r); err == nil && b.sync.isDue() {
		b.SyncSoon()
	}

	return seq, err
}

// Run makes reports durable as SyncSoon asks, until ctx ends.
func (b *Outbox) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.sync.due:
			_ = b.Sync() // what fails stays in memory, and is logged
		}
	}
}

// SyncSoon requests a sync by Run and returns at once.
func (b *Outbox) SyncSoon() { b.sync.due.Notify() }

// Sync makes all reports durable and notifies Ready. If the disk fails, the reports stay in memory,
// Next returns them from there, and Sync returns an error and logs the start of the failure. Other
// goroutines may append during a sync.
func (b *Outbox) Sync() error {
	b.mu.Lock()
	tails := b.sync.begin(b.queue)
	b.mu.Unlock()
	syncAll(tails)
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.sync.end(b.queue, tails)
}

// Next returns the oldest waiting reports, at most max of them, without removing them. It
// returns none if no report waits or is durable yet.
func (b *Outbox) Next(max int) []model.Report {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.queue.first(max)
}

// Ack removes the published reports up to and including seq.
func (b *Outbox) Ack(seq uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq >= b.queue.next {
		return nil
	}

	return b.queue.ack(seq)
}

// Drop removes the reports up to seq, which no server accepts. The event about dropped reports covers
// seq.
func (b *Outbox) Drop(seq uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq <= b.queue.acked || seq >= b.queue.next {
		return nil
	}

	return b.queue.refuse(seq)
}

// SetMaxBytes changes the bound, from the next report on.
func (b *Outbox) SetMaxBytes(max int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue.maxBytes = max
}

// Len returns how many reports wait, those about dropped ones included.
func (b *Outbox) Len() int { return b.Stats().Reports }

// Ready receives a value when there may be reports to publish.
func (b *Outbox) Ready() tasks.Signal { return b.ready }

// Close makes all reports durable and closes the files.
func (b *Outbox) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	tails := b.sync.begin(b.queue)
	syncAll(tails)

	return errors.Join(b.sync.end(b.queue, tails), b.queue.store.close())
}
