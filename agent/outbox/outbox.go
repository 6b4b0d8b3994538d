package outbox

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
)

// The sizes that hold where Options say nothing.
const (
	DefaultMaxBytes     = 64 << 20
	defaultSegmentBytes = 1 << 20
	// maxBuffered is how many bytes of reports are kept in memory while the disk
	// takes none.
	maxBuffered = 4 << 20
	// syncEvery is how old a report of a run that goes on may become before it is
	// made durable and handed over.
	syncEvery = time.Second
)

// ErrInUse is an outbox that another process has open.
var ErrInUse = errors.New("the outbox is in use by another agent")

// Options are what an outbox is made from.
type Options struct {
	// Dir is its own directory; it is made with mode 0700.
	Dir string
	// MaxBytes bounds the files together; zero means DefaultMaxBytes.
	MaxBytes int64
	// Dropped makes the report about reports that were dropped. It must not call the
	// outbox.
	Dropped func(Lost) model.Report
	// Log gets what goes wrong with the disk. Nil discards.
	Log *slog.Logger
}

// Outbox keeps reports in order. It is safe for concurrent use; only one
// process may have a directory open. Make it with Open.
type Outbox struct {
	opts         Options
	segmentBytes int64
	ready        chan struct{}

	lock *os.File

	mu       sync.Mutex
	segments []*segment // the last one is written to, by active
	active   *os.File
	// offset is where the first report of the first segment is that is not acknowledged.
	offset int64
	cursor cursor
	acked  uint64
	next   uint64
	bytes  int64
	// passed is how many reports of the first segment are before offset.
	passed int
	// synced is the number of the last report that is durable.
	synced   uint64
	lastSync time.Time
	// buffer are reports that the disk did not take.
	buffer   []record
	buffered int64
	// sent is the event about dropped reports that was handed over and is not
	// acknowledged, nil where there is none, and told what it tells. It may have
	// arrived, so it stays as it is.
	sent *model.Report
	told Lost
	// lost is what was dropped besides, event the report that will tell it, nil when
	// it is to be made anew. stale says that the file does not have it so.
	lost  Lost
	event *model.Report
	stale bool
	// handed are the reports that the last Next gave.
	handed []uint64
	// failing says that the disk takes nothing.
	failing bool
}

// Open opens an outbox, or makes it. What a kill left half written at the end
// is cut off: it was never handed over. Reports that are damaged are reported
// as dropped.
func Open(o Options) (*Outbox, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	b := &Outbox{opts: o, segmentBytes: min(defaultSegmentBytes, max(o.MaxBytes/16, 4096)), ready: make(chan struct{}, 1), lastSync: time.Now()}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open outbox: %w", err)
	}
	if err := b.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open outbox: %w", err), b.Close())
	}
	if err := b.settleLedger(); err != nil {
		b.opts.Log.Error("what was dropped from the outbox is not on disk", "error", err)
	}
	b.signal()

	return b, nil
}

// load reads what is on disk.
func (b *Outbox) load() (err error) {
	if b.lock, err = lockDir(b.opts.Dir); err != nil {
		return err
	}
	if b.cursor, b.acked, err = openCursor(b.opts.Dir); err != nil {
		return err
	}
	if b.segments, err = listSegments(b.opts.Dir); err != nil {
		return err
	}
	for i, s := range b.segments {
		damaged, err := s.load()
		if err != nil {
			return err
		}
		if damaged && i+1 < len(b.segments) {
			b.lose(s.last+1, b.segments[i+1].first-1)
		}
		b.bytes += s.size
	}
	b.next = b.acked + 1
	if last := len(b.segments) - 1; last >= 0 {
		b.next = max(b.next, b.segments[last].last+1)
		b.active, err = os.OpenFile(b.segments[last].path, os.O_RDWR, 0o600)
	} else {
		err = b.roll()
	}
	if err != nil {
		return err
	}
	b.synced = b.next - 1
	b.offset = int64(len(magic))
	if err := b.advance(b.acked); err != nil {
		return err
	}

	return b.loadLedger()
}

// lose notes a range of reports as damaged, as far as they are not handed over.
func (b *Outbox) lose(from, to uint64) {
	if from = max(from, b.acked+1); from <= to {
		b.lost.add(from, to, int(to-from+1))
		b.event, b.stale = nil, true
	}
}

// Append gives a report its number and writes it. It is durable after Sync, or
// a second later when further reports follow, and handed over only then. While
// the disk takes nothing it is kept in memory, as far as that is bounded.
func (b *Outbox) Append(r model.Report) (seq uint64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq, err = b.append(r); err != nil {
		return 0, err
	}
	b.trim()
	if time.Since(b.lastSync) > syncEvery {
		_ = b.sync() // what fails is kept in memory, and logged
	}

	return seq, nil
}

func (b *Outbox) append(r model.Report) (uint64, error) {
	r.Seq = b.next
	rec, err := encode(&r)
	if err != nil {
		return 0, err
	}
	b.next++
	b.buffer = append(b.buffer, rec)
	b.buffered += rec.size()
	b.flush()
	b.boundBuffer()

	return r.Seq, nil
}

// flush writes what is buffered to the active segment. What it cannot write
// stays in the buffer.
func (b *Outbox) flush() {
	for len(b.buffer) > 0 {
		if err := b.write(b.buffer[0]); err != nil {
			if !b.failing {
				b.opts.Log.Error("reports cannot be written to the outbox, they are kept in memory", "error", err)
			}
			b.failing = true
			return
		}
		b.unbuffer()
	}
	b.buffer = nil
	if b.failing {
		b.opts.Log.Info("reports are written to the outbox again")
	}
	b.failing = false
}

func (b *Outbox) unbuffer() {
	b.buffered -= b.buffer[0].size()
	b.buffer = b.buffer[1:]
}

func (b *Outbox) write(r record) error {
	s := b.segments[len(b.segments)-1]
	if s.size >= b.segmentBytes && s.records > 0 {
		if err := b.roll(); err != nil {
			return err
		}
		s = b.segments[len(b.segments)-1]
	}
	if _, err := b.active.WriteAt(r.appendTo(nil), s.size); err != nil {
		return errors.Join(err, b.active.Truncate(s.size))
	}
	s.add(r)
	b.bytes += r.size()

	return nil
}

// roll begins a new segment. The reports of the one before are durable then.
func (b *Outbox) roll() error {
	if b.active != nil {
		if b.segments[len(b.segments)-1].records == 0 {
			return nil
		}
		if err := b.active.Sync(); err != nil {
			return err
		}
	}
	first := b.next
	if len(b.buffer) > 0 {
		first = b.buffer[0].seq
	}
	s, f, err := createSegment(b.opts.Dir, first)
	if err != nil {
		return err
	}
	if b.active != nil {
		b.synced = max(b.synced, b.segments[len(b.segments)-1].last)
		_ = b.active.Close() // synced already
	}
	b.active, b.segments, b.bytes = f, append(b.segments, s), b.bytes+s.size

	return nil
}

// Sync makes all that was appended durable, and wakes whoever waits on Ready.
// Without a working disk the reports stay in memory and are handed over from
// there; the error says so.
func (b *Outbox) Sync() error {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.sync()
}

func (b *Outbox) sync() error {
	b.lastSync = time.Now()
	b.flush()
	defer b.signal()
	if err := b.settleLedger(); err != nil && !b.failing {
		return err
	}
	if b.failing {
		return fmt.Errorf("outbox: %d reports could not be written and are kept in memory", len(b.buffer))
	}
	s := b.segments[len(b.segments)-1]
	if s.last <= b.synced {
		return nil
	}
	if err := b.active.Sync(); err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	b.synced = s.last

	return nil
}

// SetMaxBytes changes the bound; it holds from the next report on.
func (b *Outbox) SetMaxBytes(max int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opts.MaxBytes = max
}

// Len is how many reports wait for their hand-over, that about dropped ones
// included.
func (b *Outbox) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.buffer) - b.passed
	if b.sent != nil {
		n++
	}
	if b.lost.Reports > 0 {
		n++
	}
	for _, s := range b.segments {
		n += s.records
	}

	return n
}

// Ready gets a value when there may be reports to hand over.
func (b *Outbox) Ready() <-chan struct{} { return b.ready }

func (b *Outbox) signal() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// Close makes all durable and closes the files.
func (b *Outbox) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	if b.active != nil {
		errs = append(errs, b.sync(), b.active.Close())
	}
	if b.cursor.f != nil {
		errs = append(errs, b.cursor.close())
	}
	if b.lock != nil {
		errs = append(errs, b.lock.Close())
	}

	return errors.Join(errs...)
}
