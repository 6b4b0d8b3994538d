package view

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	// maxTop is how many resources of a kind are returned.
	maxTop = 20
	// maxCounted is how many are counted of a kind, maxCountedOfNode how many of them one node
	// can bring in: it chooses their names.
	maxCounted, maxCountedOfNode = 2000, 50
	// maxPairs is how many nodes are remembered of all of them together; the nodes of a
	// resource are a lower bound then.
	maxPairs = 100_000
	// slots is into how many parts the time is divided that counts.
	countSlots = 24
)

// Resources counts which resources need attention. It is for one goroutine at a time.
type attentionCounts struct {
	every  time.Duration
	counts [attentionKinds]map[topID]*countedResource
	// broughtIn counts what nodes brought in, pairs the nodes of all.
	broughtIn map[string]int
	pairs     int
	// pruned is the slot in which what is over was removed last.
	pruned int64
}

// topID tells resources apart.
type topID struct{ manifest, resource string }

// counted is a resource, and how often it needed attention.
type countedResource struct {
	by    string
	slots [countSlots]countSlot
	// nodes are those on which it did, each with the number of the last slot.
	nodes map[string]int64
	last  time.Time
	text  string
}

// slot counts what happened within one part of the time, which is numbered from 1970.
type countSlot struct {
	number int64
	count  int
}

// New returns one that counts for a time.
func newAttentionCounts(keep time.Duration) *attentionCounts {
	t := &attentionCounts{every: max(keep/countSlots, time.Second), broughtIn: map[string]int{}}
	for i := range t.counts {
		t.counts[i] = map[topID]*countedResource{}
	}

	return t
}

func (t *attentionCounts) number(at time.Time) int64 { return at.UnixNano() / int64(t.every) }

// Add counts that a resource needs attention on a node.
func (t *attentionCounts) Add(node string, at time.Time, a attention) {
	number := t.number(at)
	t.prune(number)
	id, all := topID{a.Manifest, a.Resource}, t.counts[a.Kind]
	c := all[id]
	if c == nil {
		if t.broughtIn[node] >= maxCountedOfNode {
			return
		}
		if len(all) >= maxCounted {
			t.forget(a.Kind, at)
		}
		c = &countedResource{by: node, nodes: map[string]int64{}}
		all[id] = c
		t.broughtIn[node]++
	}
	in := &c.slots[uint64(number)%countSlots]
	if in.number < number {
		*in = countSlot{number: number}
	}
	if in.number == number {
		in.count++
	}
	switch last, is := c.nodes[node]; {
	case is:
		c.nodes[node] = max(last, number)
	case t.pairs < maxPairs:
		c.nodes[node] = number
		t.pairs++
	}
	if !at.Before(c.last) {
		c.last, c.text = at, a.Text
	}
}

// prune removes what did not need attention within the time that counts, and the nodes where it
// did not.
func (t *attentionCounts) prune(now int64) {
	if now <= t.pruned {
		return
	}
	t.pruned = now
	for k := range attentionKinds {
		for id, c := range t.counts[k] {
			before := len(c.nodes)
			maps.DeleteFunc(c.nodes, func(_ string, last int64) bool { return last <= now-countSlots })
			t.pairs -= before - len(c.nodes)
			if c.total(now) == 0 {
				t.remove(k, id)
			}
		}
	}
}

// forget gives up the half of a kind that needed attention least.
func (t *attentionCounts) forget(k attentionKind, now time.Time) {
	type one struct {
		id    topID
		count int
		last  time.Time
	}
	var all []one
	for id, c := range t.counts[k] {
		all = append(all, one{id, c.total(t.number(now)), c.last})
	}
	slices.SortFunc(all, func(a, b one) int { return cmp.Or(cmp.Compare(a.count, b.count), a.last.Compare(b.last)) })
	for _, o := range all[:len(all)/2] {
		t.remove(k, o.id)
	}
}

func (t *attentionCounts) remove(k attentionKind, id topID) {
	c := t.counts[k][id]
	delete(t.counts[k], id)
	t.pairs -= len(c.nodes)
	if t.broughtIn[c.by]--; t.broughtIn[c.by] <= 0 {
		delete(t.broughtIn, c.by)
	}
}

// total returns how often it needed attention within the time until a slot.
func (c *countedResource) total(now int64) int {
	sum := 0
	for _, s := range c.slots {
		if s.number > now-countSlots {
			sum += s.count
		}
	}

	return sum
}

// Top returns what needed attention most, of one manifest, or of all for an empty name; current are the failures
// of now.
func (t *attentionCounts) Top(manifest string, current []Failure, now time.Time) Top {
	return Top{
		Failing:  t.of(kindFailing, manifest, failingNow(current, t.counts[kindFailing]), now),
		Drifting: t.of(kindDrifting, manifest, nil, now), Flapping: t.of(kindFlapping, manifest, nil, now),
	}
}

func (t *attentionCounts) of(k attentionKind, manifest string, current map[topID]currentFailures, now time.Time) []TopResource {
	out := []TopResource{}
	// What goes on failing is reported once a day: on how many nodes it fails tells more than how often it
	// was reported.
	nodes := func(r TopResource) int {
		if k != kindFailing {
			return 0
		}
		return len(t.counts[k][topID{r.Manifest, r.Resource}].nodes)
	}
	for id, c := range t.counts[k] {
		if manifest != "" && id.manifest != manifest {
			continue
		}
		if count := c.total(t.number(now)); count > 0 {
			fails := current[id]
			out = append(out, TopResource{Manifest: id.manifest, Resource: id.resource, Count: count, Last: c.last, Text: c.text, Now: fails.nodes, AtLeast: fails.atLeast, Since: fails.since})
		}
	}
	slices.SortFunc(out, func(a, b TopResource) int {
		return cmp.Or(cmp.Compare(b.Now, a.Now), cmp.Compare(nodes(b), nodes(a)), cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last), cmp.Compare(a.Manifest, b.Manifest), cmp.Compare(a.Resource, b.Resource))
	})
	out = out[:min(len(out), maxTop)]
	for i := range out {
		out[i].Members = membersOf(t.counts[k][topID{out[i].Manifest, out[i].Resource}].nodes)
	}

	return out
}
