package serve

import (
	"context"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

const (
	// newestReports is the number of messages before the end that are read first.
	newestReports = 10_000
	// blockSize is the number of older messages that are read at once. The newest block comes first.
	blockSize = 50_000
	// maxHistory is the maximum number of bytes of older messages that are read.
	maxHistory = 2 << 30
)

// past limits the history: the bytes in total and the messages in one block.
type past struct {
	most  int
	block uint64
}

// followReports adds the newest reports, and then new ones as they arrive.
func (f *feed) followReports(ctx context.Context) error {
	end := uint64(0) // the last sequence at the first start
	if !f.isBegun {
		newest, err := f.Reports.NewestMessage(ctx)
		if err != nil {
			return err
		}
		end = newest.Sequence
		f.to.SetEnd(end)
		f.after = end - min(end, newestReports)
		f.until = f.after + 1
	}
	if end == 0 {
		f.begin(time.Now())
	}
	var first time.Time

	return each(f.Reports.Messages(ctx, model.ReportRange{After: f.after, Follow: true}), math.MaxUint64, func(m model.StoredReports) {
		f.to.Add(messageOf(m))
		f.after = m.Sequence
		if !f.isBegun {
			f.shares.Add(m)
		}
		if first.IsZero() {
			first = m.Stored
		}
		if m.Sequence >= end {
			f.begin(first)
		}
	})
}

// each calls tell for the messages up to a sequence. A second goroutine reads and decodes ahead.
func each(all iter.Seq2[model.StoredReports, error], until uint64, tell func(model.StoredReports)) error {
	const waiting = 64
	read := make(chan model.StoredReports, waiting)
	var telling sync.WaitGroup
	telling.Go(func() {
		for m := range read {
			tell(m)
		}
	})
	defer telling.Wait()
	defer close(read)
	for m, err := range all {
		if err != nil {
			return err
		}
		if m.Sequence >= until {
			break
		}
		read <- m
	}

	return nil
}

// endPause is the interval of checks of the end of the stream.
const endPause = 10 * time.Second

// followEnd sets the end of the stream, so that the view knows how many messages are missing. It asks the leader,
// because another server may lag.
func (f *feed) followEnd(ctx context.Context) error {
	for {
		end, err := f.Reports.End(ctx)
		if err != nil {
			return err
		}
		f.to.SetEnd(end)
		if err := pause(ctx, endPause); err != nil {
			return err
		}
	}
}

// begin starts the read of older reports. All reports since the given time were added.
func (f *feed) begin(since time.Time) {
	if !f.isBegun {
		f.isBegun = true
		f.to.SetSince(since, false)
		close(f.begun)
	}
}

// messageOf converts a message for the view.
func messageOf(m model.StoredReports) view.StreamMessage {
	return view.StreamMessage{Seq: m.Sequence, Stored: m.Stored, Reports: m.Reports, Invalid: m.Invalid}
}

// readHistory adds the last run of each node, and then the older reports, the newest block first.
func (f *feed) readHistory(ctx context.Context) error {
	newest := model.ReportRange{Kind: model.KindRun, Newest: true}
	if err := each(f.Reports.Messages(ctx, newest), math.MaxUint64, func(m model.StoredReports) { f.to.AddRuns(messageOf(m)) }); err != nil {
		return err
	}
	f.to.SetLastRuns()
	oldest := time.Now().Add(-f.keep)
	read, size, known := 0, f.past.block, time.Time{}
	all := f.until <= 1
	for !all && read < f.past.most {
		if f.block == (block{}) {
			from := f.until - min(size, f.until-1)
			f.block = block{from: from, after: from - 1}
		}
		if err := f.addPast(f.Reports.Messages(ctx, model.ReportRange{After: f.block.after}), oldest); err != nil {
			return err
		}
		b := f.block
		f.until, f.block = b.from, block{}
		read += b.bytes
		all = f.until <= 1 || b.count > 0 && b.first.Before(oldest)
		if b.count > 0 && !all {
			known = b.first
			f.to.SetSince(known, false)
		}
		// After a gap of removed messages, the next block is larger.
		if size *= 2; uint64(b.count) > size/4 {
			size = f.past.block
		}
	}
	if err := f.tellShares(ctx); err != nil {
		return err
	}
	if !all {
		f.to.SetTruncated(known)
		return nil
	}
	f.to.SetSince(oldest, true)

	return nil
}

// tellShares names the nodes that have more reports than the stream retains.
func (f *feed) tellShares(ctx context.Context) error {
	bounds, err := f.Reports.Bounds(ctx)
	if err != nil {
		return err
	}
	f.to.SetShares(bounds.PerSubject, f.shares.Full(bounds))
	f.shares = view.Shares{}

	return nil
}

// block is a part of the history. A retry after a failed read continues after the messages that were added.
type block struct {
	// from is the first sequence of the block, after the last added sequence.
	from, after  uint64
	count, bytes int
	// first is the time at which the first message was stored.
	first time.Time
}

// addPast adds the rest of the block up to the messages that were added before. It skips messages older than oldest.
func (f *feed) addPast(rest iter.Seq2[model.StoredReports, error], oldest time.Time) error {
	b := &f.block

	return each(rest, f.until, func(m model.StoredReports) {
		b.after = m.Sequence
		b.bytes += m.Size
		if b.count++; b.count == 1 {
			b.first = m.Stored
		}
		if !m.Stored.Before(oldest) {
			f.to.Add(messageOf(m))
			f.shares.Add(m)
		}
	})
}
