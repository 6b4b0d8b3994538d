package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

const (
	// DefaultMaxBytes bounds an outbox whose options do not.
	DefaultMaxBytes = 64 << 20
	// segmentCount is how many files a full outbox has, about.
	segmentCount = 64
	// maxBuffered bounds the bytes of reports in memory while the disk takes none.
	maxBuffered = 4 << 20
	// syncEvery is how old a report of a long run may become before it is synced and
	// published.
	syncEvery = time.Second
)

// ErrInUse reports an outbox that another process has open.
var ErrInUse = errors.New("the outbox is in use by another agent")

// Options are what Open needs.
type Options struct {
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
// at a time.
type Outbox struct {
	opts  Options
	ready tasks.Signal
	// due has Run make all reports durable.
	due tasks.Signal

	mu    sync.Mutex
	store *store
	// waiting are the reports that are not acknowledged, in order; those that the
	// disk did not take come last.
	waiting []entry
	// next is the seq of the next report, acked the last acknowledged one.
	next, acked uint64
	notice      notice
	// published are the reports that the last Next returned.
	published []uint64
	syncedAt  time.Time
	// failing reports that the disk takes nothing, unsynced that it keeps nothing.
	failing, unsynced bool
}

// entry is a report that waits.
type entry struct {
	seq   uint64
	class class
	// segment has it at offset; without one memory has it.
	segment      *segment
	offset, size int64
	memory       *record
}

func bySeq(a, b entry) int { return cmp.Compare(a.seq, b.seq) }

// Open opens an outbox, or creates it. What a kill left half written at its end
// is cut off: it was never published. Damaged reports are reported as dropped, and
// their file is kept aside. It returns ErrInUse when another process has the
// directory, and ErrFormat, with the segments untouched, when another version
// of muster wrote them.
func Open(o Options) (*Outbox, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	s, err := openStore(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open outbox: %w", err)
	}
	b := &Outbox{opts: o, ready: tasks.NewSignal(), due: tasks.NewSignal(), store: s, syncedAt: time.Now()}
	if err := b.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open outbox: %w", err), s.close())
	}
	b.flush()
	b.ready.Notify()

	return b, nil
}

// Append returns a report its seq and writes it. It is durable, and Next returns it,
// after Sync or SyncSoon, or while Run runs a second later when further reports follow.
// While the disk takes nothing it stays in memory, which is bounded. An error means that
// it cannot be encoded.
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
	if time.Since(b.syncedAt) > syncEvery {
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

// SyncSoon has Run do what Sync does, and does not wait for it.
func (b *Outbox) SyncSoon() { b.due.Notify() }

// Sync makes all reports durable, and wakes whoever waits on Ready. Without a
// working disk they stay in memory, Next returns them from there, and it returns
// an error, which is logged when it begins. Others may append meanwhile.
func (b *Outbox) Sync() error {
	b.mu.Lock()
	tails := b.toSync()
	b.mu.Unlock()
	syncAll(tails)
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.synced(tails)
}

// sync is Sync for who holds the lock.
func (b *Outbox) sync() error {
	tails := b.toSync()
	syncAll(tails)

	return b.synced(tails)
}

// SetMaxBytes changes the bound, from the next report on.
func (b *Outbox) SetMaxBytes(max int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opts.MaxBytes = max
}

// Len returns how many reports wait, those about dropped ones included.
func (b *Outbox) Len() int { return b.Stats().Reports }

// Ready receives a value when there may be reports to publish.
func (b *Outbox) Ready() tasks.Signal { return b.ready }

// Close makes all reports durable and closes the files.
func (b *Outbox) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()

	return errors.Join(b.sync(), b.store.close())
}
