package watch

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/kvstore"
)

const (
	// maxTaken limits the keys that are read in one step.
	maxTaken = 120
	// patience is how long a key waits for its announced sequence. Then the stored message counts.
	patience = 2 * time.Second
)

// pending holds the announced keys that were not read yet.
type pending struct {
	// came receives a token when a key is added.
	came chan struct{}
	// together takes all keys as soon as one is due, in the order of their sequences.
	together bool

	mu sync.Mutex
	// queues holds the keys of each family, in the order of parts.
	queues []map[string]announcement
}

// announcement is a key to read, with the time of the read and the lowest expected sequence.
type announcement struct {
	family   int
	key      string
	sequence uint64
	due      time.Time
	// since is the time at which the read was first due. tries counts the reads that returned an older
	// message.
	since time.Time
	tries int
}

func newPending(families int) *pending {
	p := &pending{came: make(chan struct{}, 1), queues: make([]map[string]announcement, families)}
	for i := range p.queues {
		p.queues[i] = map[string]announcement{}
	}

	return p
}

// add adds a key. A waiting key keeps its time, so that a key that always changes is read
// nevertheless.
func (p *pending) add(family int, key string, sequence uint64, due time.Time) {
	p.mu.Lock()
	a := announcement{family: family, key: key, sequence: sequence, due: due, since: due}
	if before, ok := p.queues[family][key]; ok {
		a.due, a.since, a.sequence = before.due, before.since, max(a.sequence, before.sequence)
	}
	p.queues[family][key] = a
	p.mu.Unlock()
	select {
	case p.came <- struct{}{}:
	default:
	}
}

// again puts back a taken key, unless it was announced again.
func (p *pending) again(a announcement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, ok := p.queues[a.family][a.key]; ok {
		a.sequence, a.tries, a.due = max(a.sequence, before.sequence), before.tries, before.due
	}
	p.queues[a.family][a.key] = a
}

func (p *pending) next() (at time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.queues {
		for _, a := range q {
			if !ok || a.due.Before(at) {
				at, ok = a.due, true
			}
		}
	}

	return at, ok
}

// take removes and returns due keys, the longest due first. It takes the same number of keys from each
// family, the keys of the node first.
func (p *pending) take(now time.Time) []announcement {
	p.mu.Lock()
	defer p.mu.Unlock()
	var taken []announcement
	if p.together {
		now = p.dueTogether(now)
	}
	for _, q := range p.queues {
		var due []announcement
		for _, a := range q {
			if !a.due.After(now) {
				due = append(due, a)
			}
		}
		slices.SortFunc(due, func(a, b announcement) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.key, b.key)) })
		due = due[:min(len(due), max(1, maxTaken/len(p.queues)))]
		for _, a := range due {
			delete(q, a.key)
		}
		taken = append(taken, due...)
	}
	if p.together {
		slices.SortFunc(taken, func(a, b announcement) int { return cmp.Compare(a.sequence, b.sequence) })
	}

	return taken
}

// dueTogether returns the time at which all keys are due if one key is due now. Otherwise it returns
// now.
func (p *pending) dueTogether(now time.Time) time.Time {
	last, isDue := now, false
	for _, q := range p.queues {
		for _, a := range q {
			isDue = isDue || !a.due.After(now)
			if a.due.After(last) {
				last = a.due
			}
		}
	}
	if !isDue {
		return now
	}

	return last
}

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
	// last is the last sequence of the bucket at the latest comparison of the family.
	last uint64
}

// isEmptied reports whether the bucket lost all its messages since the latest comparison. It may have new messages.
// No user removed the assignments, because a deletion leaves a marker.
func (p *part) isEmptied(h held, listed kvstore.Listing) bool {
	return listed.First > max(p.last, h.Revision)
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

func (all parts) of(key string) *part {
	i := slices.IndexFunc(all, func(p *part) bool { return strings.HasPrefix(key, p.family+".") })

	return all[max(i, 0)] // the node subscribes to no other family
}

func (all parts) next() time.Time {
	at := all[0].at
	for _, p := range all {
		if p.at.Before(at) {
			at = p.at
		}
	}

	return at
}

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
