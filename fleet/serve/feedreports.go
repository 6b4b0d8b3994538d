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
	// newestReports is how many messages before the end are read first.
	newestReports = 10_000
	// blockSize is how many messages of the past are read at once, the newest block first.
	blockSize = 50_000
	// maxHistory is how many bytes of the past are read.
	maxHistory = 2 << 30
)

// past is how much of the past is read: so many bytes at most, and so many messages at once.
type past struct {
	most  int
	block uint64
}

// followReports tells the newest reports, and then what arrives.
func (f *feed) followReports(ctx context.Context) error {
	end := uint64(0) // the newest there was when this began for the first time
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

// each calls tell for each message up to a sequence, while the next ones are read and decoded.
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

// endPause is how often the end of the stream is looked at.
const endPause = 10 * time.Second

// followEnd tells how far the stream goes, by which it is known how much is not read yet: what is read may be the word
// of a server that lags, so the leader is asked.
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

// begin has the past read, when all reports since a time are added.
func (f *feed) begin(since time.Time) {
	if !f.isBegun {
		f.isBegun = true
		f.to.SetSince(since, false)
		close(f.begun)
	}
}

// messageOf returns a message as the view takes it.
func messageOf(m model.StoredReports) view.StreamMessage {
	return view.StreamMessage{Seq: m.Sequence, Stored: m.Stored, Reports: m.Reports, Invalid: m.Invalid}
}

// readHistory tells the last run of each node, and then what was reported before the newest
// reports, the newest block first.
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
		// Where most were removed, the ones before them are far away.
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

// tellShares names the nodes of whose reports the stream has only the newest.
func (f *feed) tellShares(ctx context.Context) error {
	bounds, err := f.Reports.Bounds(ctx)
	if err != nil {
		return err
	}
	f.to.SetShares(bounds.PerSubject, f.shares.Full(bounds))
	f.shares = view.Shares{}

	return nil
}

// block is a part of the past: what of it was added is not added again when reading failed meanwhile.
type block struct {
	// from is its first sequence, after the last one that was added.
	from, after  uint64
	count, bytes int
	// first is when the first message was stored.
	first time.Time
}

// addPast adds the rest of the block, which was stored not before a time, up to what is there already.
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
