package reporting

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

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

// readNotice reads the notice.
func (s *store) readNotice() (n notice, err error) {
	if n, err = s.parseNotice(); err != nil {
		return notice{}, errors.Join(err, os.Rename(s.noticePath(), s.noticePath()+".damaged"))
	}

	return n, nil
}

// parseNotice reads the notice, and leaves a damaged one as it is.
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

// count returns how many events are to publish.
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
