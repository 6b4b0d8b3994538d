package reporting

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/musterfleet/muster/model"
)

// notice records dropped reports. Writing its file drops them, even if a segment still contains them.
type notice struct {
	// Event is the report about dropped ones that was published, perhaps. It stays as
	// it is until it is acknowledged, so that it is the same when it comes again.
	Event *model.Report `json:"event,omitempty"`
	// Lost are those that Event does not cover; the next event does.
	Lost Lost `json:"lost,omitzero"`
	// Gone has the ranges of all dropped ones behind the last acknowledged report.
	Gone Lost `json:"gone,omitzero"`

	// stale reports that the file has an older one.
	stale bool
	// dropped counts what add noted.
	dropped uint64
}

func (s *store) noticePath() string { return filepath.Join(s.dir, "dropped.json") }

func (s *store) readNotice() (n notice, err error) {
	if n, err = s.parseNotice(); err != nil {
		return notice{}, errors.Join(err, os.Rename(s.noticePath(), s.noticePath()+".damaged"))
	}

	return n, nil
}

func (s *store) parseNotice() (n notice, err error) {
	data, err := os.ReadFile(s.noticePath())
	if errors.Is(err, fs.ErrNotExist) {
		return notice{}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &n)
	}

	return n, err
}

// writeNotice makes the notice durable where the file has an older one.
func (s *store) writeNotice(n *notice) error {
	if !n.stale {
		return nil
	}
	n.Lost.bound()
	data, err := json.Marshal(n)
	if err == nil {
		err = s.cursor.Sync() // or what Gone leaves out looks lost after a power failure
	}
	if err == nil {
		err = replaceFile(s.noticePath(), data)
	}
	if err == nil {
		err = syncDir(s.dir)
	}
	n.stale = err != nil

	return err
}

// add notes that the reports of a range are dropped, but for those it knows of.
func (n *notice) add(from, to uint64) {
	for from <= to {
		end := to
		if at := n.Gone.position(from); at < len(n.Gone.Ranges) {
			next := n.Gone.Ranges[at]
			if next.From <= from {
				from = next.To + 1
				continue
			}
			end = min(to, next.From-1)
		}
		n.Lost.add(from, end)
		n.Gone.add(from, end)
		n.stale = true
		n.dropped += end - from + 1
		from = end + 1
	}
}

// acknowledge removes the published event up to seq, and the reports that arrived although they were
// dropped.
func (n *notice) acknowledge(seq uint64, arrived []uint64) {
	if n.Event != nil && n.Event.Seq <= seq {
		n.Event, n.stale = nil, true
	}
	for _, a := range arrived {
		n.stale = n.Lost.remove(a) || n.stale
	}
	n.Gone.Ranges = n.Gone.Ranges[n.Gone.position(seq+1):]
}

func (n *notice) count() (count int) {
	if n.Event != nil {
		count++
	}
	if n.Lost.Reports > 0 {
		count++
	}

	return count
}

// position returns the seq of the next event, the first seq that it covers: readers find the event
// where the gap begins. It returns false if there is no event.
func (n *notice) position() (seq uint64, ok bool) {
	switch {
	case n.Event != nil:
		return n.Event.Seq, true
	case n.Lost.Reports > 0:
		return n.Lost.Ranges[0].From, true
	default:
		return 0, false
	}
}

// publish makes the next event where none is on its way.
func (n *notice) publish(report func(Lost) model.Report) {
	if n.Event != nil {
		return
	}
	n.Lost.bound()
	event := report(n.Lost)
	event.Seq = n.Lost.Ranges[0].From
	n.Event, n.Lost, n.stale = &event, Lost{}, true
}

// maxRanges bounds the ranges of an event; beyond it those that are closest
// become one. The count stays exact.
const maxRanges = 1000

// Lost are reports that were dropped: how many, and their seqs in order.
type Lost struct {
	Reports int              `json:"reports"`
	Ranges  []model.SeqRange `json:"ranges,omitempty"`
}

func (l *Lost) has(seq uint64) bool {
	at := l.position(seq)

	return at < len(l.Ranges) && l.Ranges[at].From <= seq
}

// position returns the index of the first range that ends at seq or behind it.
func (l *Lost) position(seq uint64) int {
	at, _ := slices.BinarySearchFunc(l.Ranges, seq, func(r model.SeqRange, seq uint64) int {
		if r.To < seq {
			return -1
		}
		return 1
	})

	return at
}

func (l *Lost) last() uint64 {
	if len(l.Ranges) == 0 {
		return 0
	}

	return l.Ranges[len(l.Ranges)-1].To
}

// add adds a range that does not overlap others, and joins it with adjacent ranges.
func (l *Lost) add(from, to uint64) {
	l.Reports += int(to - from + 1)
	at := l.position(max(from, 1) - 1)
	end := at
	for end < len(l.Ranges) && l.Ranges[end].From <= to+1 {
		from, to = min(from, l.Ranges[end].From), max(to, l.Ranges[end].To)
		end++
	}
	l.Ranges = slices.Replace(l.Ranges, at, end, model.SeqRange{From: from, To: to})
}

func (l *Lost) remove(seq uint64) bool {
	if !l.has(seq) {
		return false
	}
	at := l.position(seq)
	r := l.Ranges[at]
	var rest []model.SeqRange
	if r.From < seq {
		rest = append(rest, model.SeqRange{From: r.From, To: seq - 1})
	}
	if seq < r.To {
		rest = append(rest, model.SeqRange{From: seq + 1, To: r.To})
	}
	l.Ranges = slices.Replace(l.Ranges, at, at+1, rest...)
	l.Reports--

	return true
}

// bound joins the ranges with the smallest gaps where there are too many.
func (l *Lost) bound() {
	excess := len(l.Ranges) - maxRanges
	if excess <= 0 {
		return
	}
	gaps := make([]uint64, 0, len(l.Ranges)-1)
	for i, r := range l.Ranges[1:] {
		gaps = append(gaps, r.From-l.Ranges[i].To)
	}
	slices.Sort(gaps)
	widest, out := gaps[excess-1], l.Ranges[:1]
	for _, r := range l.Ranges[1:] {
		last := &out[len(out)-1]
		if excess > 0 && r.From-last.To <= widest {
			last.To = r.To
			excess--
			continue
		}
		out = append(out, r)
	}
	l.Ranges = out
}
