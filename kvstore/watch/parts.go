package watch

import (
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/kvstore"
)

// part is the state of one family. Families do not wait for each other.
type part struct {
	family string
	// at is the time of the next comparison with the bucket.
	at    time.Time
	retry time.Duration
	// complete reports whether the family was read completely at least once.
	complete bool
	err      error
	// newest is the last message of the family at the last complete read. gone holds the keys that
	// were deleted then.
	newest mark
	gone   map[string]bool
	// overflows is the earliest time of the next comparison because of dropped announcements.
	overflows time.Time
}

// overflowPause is the lowest number of retry pauses between two comparisons because of dropped
// announcements.
const overflowPause = 10

// overflow schedules a comparison because announcements were dropped, but not too often.
func (p *part) overflow(now time.Time, spread, retry time.Duration) {
	at := now.Add(spread)
	if at.Before(p.overflows) {
		at = p.overflows
	}
	if at.Before(p.at) {
		p.at, p.overflows = at, at.Add(overflowPause*retry)
	}
}

// mark identifies a stored message. It has the time, because a recreated bucket counts from 1 again.
type mark struct {
	sequence uint64
	time     int64
}

func markOf(m kvstore.Message) mark {
	if m.Sequence == 0 {
		return mark{}
	}

	return mark{sequence: m.Sequence, time: m.Time.UnixNano()}
}

// isLost reports whether m was stored later but has a smaller sequence. Then the stream was recreated
// or restored.
func (k mark) isLost(m kvstore.Message) bool {
	return m.Sequence < k.sequence && m.Time.UnixNano() > k.time
}

// parts are the families of a node, its own first.
type parts []*part

// newParts returns families that are all due now.
func newParts(families []string, retry time.Duration) parts {
	var all parts
	for _, family := range families {
		all = append(all, &part{family: family, at: time.Now(), retry: retry})
	}

	return all
}

// of returns the family of a key. The key may be invalid.
func (all parts) of(key string) *part {
	i := slices.IndexFunc(all, func(p *part) bool { return strings.HasPrefix(key, p.family+".") })

	return all[max(i, 0)] // the node subscribes to no other family
}

// next returns the earliest time at which a family is due.
func (all parts) next() time.Time {
	at := all[0].at
	for _, p := range all {
		if p.at.Before(at) {
			at = p.at
		}
	}

	return at
}

// due returns the due families.
func (all parts) due(now time.Time) []*part {
	var due []*part
	for _, p := range all {
		if !p.at.After(now) {
			due = append(due, p)
		}
	}

	return due
}

// soon schedules a comparison of all families, because announcements were lost while the server was
// away. It compares complete families together after the spread: a resume must not overtake an earlier
// pause.
func (all parts) soon(spread time.Duration) {
	now := time.Now()
	for _, p := range all {
		at := now
		if p.complete {
			at = at.Add(spread)
		}
		if at.Before(p.at) {
			p.at = at
		}
	}
}

// state returns the complete families, the families with errors, and these errors.
func (all parts) state() (known, failed []string, why []error) {
	for _, p := range all {
		if p.complete {
			known = append(known, p.family)
		}
		if p.err != nil {
			failed, why = append(failed, p.family), append(why, p.err)
		}
	}

	return known, failed, why
}
