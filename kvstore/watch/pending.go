package watch

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	// maxPending is how many keys of a family wait, maxPendingBytes how long they are
	// together: announcements are hints, and what is left out is compared instead.
	maxPending      = 1000
	maxPendingBytes = 256 << 10
	// maxTaken is how many keys are read until something else has its turn.
	maxTaken = 120
	// patience is how long a key that is announced again and again is not what was
	// announced until it is read as it is.
	patience = 2 * time.Second
)

// pending are the keys that the server announced and that were not read yet.
type pending struct {
	// came has a token when a key was added since it was last taken.
	came chan struct{}
	// together takes all keys as soon as one is due, in the order of their sequences.
	together bool

	mu sync.Mutex
	// queues are those of each family, in the order of parts.
	queues []queue
}

// queue are the keys of one family.
type queue struct {
	keys  map[string]announcement
	bytes int
	// overflowed reports whether keys were left out.
	overflowed bool
}

// announcement is one key to read, when, and the sequence it must have at least.
type announcement struct {
	family   int
	key      string
	sequence uint64
	due      time.Time
	// since is when it was due first, tries how often it was read without that sequence.
	since time.Time
	tries int
}

func newPending(families int) *pending {
	p := &pending{came: make(chan struct{}, 1), queues: make([]queue, families)}
	for i := range p.queues {
		p.queues[i].keys = map[string]announcement{}
	}

	return p
}

// add notes a key; a key that waits already keeps its moment, so that a key
// that changes all the time is read all the same.
func (p *pending) add(family int, key string, sequence uint64, due time.Time) {
	p.mu.Lock()
	q := &p.queues[family]
	a := announcement{family: family, key: key, sequence: sequence, due: due, since: due}
	if before, ok := q.keys[key]; ok {
		a.due, a.since, a.sequence = before.due, before.since, max(a.sequence, before.sequence)
	}
	q.put(a)
	p.mu.Unlock()
	select {
	case p.came <- struct{}{}:
	default:
	}
}

// again has a key that was taken wait once more, unless it was announced meanwhile.
func (p *pending) again(a announcement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.queues[a.family]
	if before, ok := q.keys[a.key]; ok {
		a.sequence, a.tries, a.due = max(a.sequence, before.sequence), before.tries, before.due
	}
	q.put(a)
}

// put adds or replaces a key, if there is room for it.
func (q *queue) put(a announcement) {
	if _, ok := q.keys[a.key]; !ok {
		if len(q.keys) >= maxPending || q.bytes+len(a.key) > maxPendingBytes {
			q.overflowed = true
			return
		}
		q.bytes += len(a.key)
	}
	q.keys[a.key] = a
}

// next returns the earliest moment a key is due; ok is false when none waits.
func (p *pending) next() (at time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.queues {
		for _, a := range q.keys {
			if !ok || a.due.Before(at) {
				at, ok = a.due, true
			}
		}
	}

	return at, ok
}

// take removes and returns keys that are due, those of the node first: of each family its
// share, the longest due first.
func (p *pending) take(now time.Time) []announcement {
	p.mu.Lock()
	defer p.mu.Unlock()
	var taken []announcement
	if p.together {
		now = p.dueTogether(now)
	}
	for i := range p.queues {
		q := &p.queues[i]
		var due []announcement
		for _, a := range q.keys {
			if !a.due.After(now) {
				due = append(due, a)
			}
		}
		slices.SortFunc(due, func(a, b announcement) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.key, b.key)) })
		due = due[:min(len(due), max(1, maxTaken/len(p.queues)))]
		for _, a := range due {
			delete(q.keys, a.key)
			q.bytes -= len(a.key)
		}
		taken = append(taken, due...)
	}
	if p.together {
		slices.SortFunc(taken, func(a, b announcement) int { return cmp.Compare(a.sequence, b.sequence) })
	}

	return taken
}

// dueTogether returns the moment at which all keys are due if one is due now, else now.
func (p *pending) dueTogether(now time.Time) time.Time {
	last, isDue := now, false
	for _, q := range p.queues {
		for _, a := range q.keys {
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

// overflowed returns the families of which keys were left out since the last call.
func (p *pending) overflowed() (families []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.queues {
		if p.queues[i].overflowed {
			families = append(families, i)
			p.queues[i].overflowed = false
		}
	}

	return families
}
