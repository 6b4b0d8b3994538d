package watch

import (
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/kvstore"
)

// part is how far a loop is with one family. What one family lacks does not hold
// up the others.
type part struct {
	family string
	// at is when it is compared with the bucket.
	at    time.Time
	retry time.Duration
	// complete reports whether everything of it was known once.
	complete bool
	err      error
	// newest is its last message when all of it was last read, gone are the keys that
	// were deleted then.
	newest mark
	gone   map[string]bool
	// overflows is when keys that were announced may next have it compared.
	overflows time.Time
}

// overflowPause is how many retries there are between two comparisons because more keys were
// announced than wait.
const overflowPause = 10

// overflow plans to compare a family of which announced keys were left out: soon, but not all
// the time.
func (p *part) overflow(now time.Time, spread, retry time.Duration) {
	at := now.Add(spread)
	if at.Before(p.overflows) {
		at = p.overflows
	}
	if at.Before(p.at) {
		p.at, p.overflows = at, at.Add(overflowPause*retry)
	}
}

// mark identifies a stored message, also by its time: a bucket that
// was recreated counts from 1 again.
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

// isLost reports whether another message was stored later with a smaller sequence: in a
// stream that was created again, or put back.
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

// of returns the family that a key is below, also one of another form.
func (all parts) of(key string) *part {
	i := slices.IndexFunc(all, func(p *part) bool { return strings.HasPrefix(key, p.family+".") })

	return all[max(i, 0)] // nothing else is subscribed to
}

// next returns when the first of them is due.
func (all parts) next() time.Time {
	at := all[0].at
	for _, p := range all {
		if p.at.Before(at) {
			at = p.at
		}
	}

	return at
}

// due returns those that are due.
func (all parts) due(now time.Time) []*part {
	var due []*part
	for _, p := range all {
		if !p.at.After(now) {
			due = append(due, p)
		}
	}

	return due
}

// soon plans to compare all families with the bucket, because announcements were lost while the server was away. It compares
// complete families together after the spread: a resume must not overtake an earlier pause.
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

// state returns those that are complete, those that could not be read, and why.
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
