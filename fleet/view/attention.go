package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/musterfleet/muster/fleet"
)

type attentionKind int

// The kinds.
const (
	kindFailing attentionKind = iota
	kindDrifting
	kindFlapping
	attentionKinds
)

// attention records that a resource of a manifest needs attention. Text is the error or the drift.
type attention struct {
	Kind                     attentionKind
	Manifest, Resource, Text string
}

// Top are the resources that need attention most, the most frequent first. Of failing resources it contains
// the ones that fail now on most nodes.
type Top struct {
	Failing  []TopResource `json:"failing"`
	Drifting []TopResource `json:"drifting"`
	Flapping []TopResource `json:"flapping"`
}

// TopResource is a resource of a manifest and the number of its occurrences since Progress.Since or within
// the retention time. A lasting failure is reported and counted once a day.
type TopResource struct {
	Manifest string    `json:"manifest"`
	Resource string    `json:"resource"`
	Count    int       `json:"count"`
	Last     time.Time `json:"last"`
	// Text is the newest error or drift.
	Text string `json:"text"`
	// Now is the number of nodes whose last run has it as the first error. Since is the time of the error
	// that most of them have. Both are zero for a resource that does not fail now, drifts or flaps.
	Now int `json:"failing_now,omitempty"`
	// AtLeast means that Now is a lower bound: on other nodes another resource of the manifest failed first.
	AtLeast bool      `json:"failing_now_at_least,omitempty"`
	Since   time.Time `json:"failing_since,omitzero"`
	// Members are the nodes that reported it.
	Members
}

const (
	// maxTop limits the returned resources of a kind.
	maxTop = 20
	// maxCounted limits the counted resources of a kind, maxCountedOfNode the resources that one node adds,
	// because it chooses their names.
	maxCounted, maxCountedOfNode = 2000, 50
	// maxPairs limits the remembered nodes of all resources together. Beyond it, the nodes of a resource are
	// a lower bound.
	maxPairs = 100_000
	// slots is the number of slots of the retention time.
	countSlots = 24
)

// attentionCounts counts the resources that need attention. It is not safe for concurrent use.
type attentionCounts struct {
	every  time.Duration
	counts [attentionKinds]map[topID]*countedResource
	// broughtIn counts the resources that each node added, pairs the nodes of all resources.
	broughtIn map[string]int
	pairs     int
	// pruned is the slot of the last pruning.
	pruned int64
}

type topID struct{ manifest, resource string }

type countedResource struct {
	by    string
	slots [countSlots]countSlot
	// nodes are the nodes of the occurrences, with the number of the last slot.
	nodes map[string]int64
	last  time.Time
	text  string
}

// countSlot counts the occurrences in one slot. Slots are numbered from 1970.
type countSlot struct {
	number int64
	count  int
}

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

// forget removes the half of a kind with the fewest occurrences.
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

// total returns the number of occurrences in the slots up to now.
func (c *countedResource) total(now int64) int {
	sum := 0
	for _, s := range c.slots {
		if s.number > now-countSlots {
			sum += s.count
		}
	}

	return sum
}

// Top returns the resources that need attention most, of one manifest or, for an empty name, of all. current
// are the current failures.
func (t *attentionCounts) Top(manifest string, current []Failure, now time.Time) Top {
	return Top{
		Failing:  t.of(kindFailing, manifest, failingNow(current, t.counts[kindFailing]), now),
		Drifting: t.of(kindDrifting, manifest, nil, now), Flapping: t.of(kindFlapping, manifest, nil, now),
	}
}

func (t *attentionCounts) of(k attentionKind, manifest string, current map[topID]currentFailures, now time.Time) []TopResource {
	out := []TopResource{}
	// A lasting failure is reported once a day, so the number of failing nodes matters more than the number
	// of reports.
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

// currentFailures is the number of nodes where a resource fails now, and since when, from the states of nodes.
type currentFailures struct {
	nodes int
	since time.Time
	// atLeast means that it may also fail on other nodes, after another resource of the manifest.
	atLeast bool
	// most is the number of nodes with the error of since.
	most int
}

// failingNow returns the resources that fail now. The state of a node names only the first error of a run, so
// a resource that fails after another one is unknown.
func failingNow(all []Failure, known map[topID]*countedResource) map[topID]currentFailures {
	out := map[topID]currentFailures{}
	// behind is the number of nodes with further errors, by manifest and by resource.
	behind, behindIt := map[string]int{}, map[topID]int{}
	for _, failure := range all {
		if failure.Status != fleet.StatusFailed {
			continue
		}
		behind[failure.Manifest] += failure.More
		for f := range failure.Texts() {
			id, found := resourceOf(f, known)
			if !found {
				continue
			}
			behindIt[id] += f.More
			now := out[id]
			if now.nodes += f.Nodes; !f.Since.IsZero() && f.Nodes > now.most {
				now.since, now.most = f.Since, f.Nodes
			}
			out[id] = now
		}
	}
	for id, now := range out {
		now.atLeast = behind[id.manifest] > behindIt[id]
		out[id] = now
	}

	return out
}

// resourceOf returns the resource of an error "<type>#<name>: <error>", possibly after a position. Each part
// may contain a colon, so it searches for known resources.
func resourceOf(f Failure, known map[topID]*countedResource) (topID, bool) {
	for at, c := range f.Error {
		if c != '#' {
			continue
		}
		from := 1 + strings.LastIndexFunc(f.Error[:at], func(r rune) bool { return unicode.IsSpace(r) })
		for to := at; ; to++ {
			colon := strings.Index(f.Error[to:], ": ")
			if colon < 0 {
				break
			}
			to += colon
			id := topID{f.Manifest, cutText(f.Error[from:to], maxWord)}
			if known[id] != nil {
				return id, true
			}
		}
	}

	return topID{}, false
}
