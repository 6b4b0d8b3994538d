package runner

import (
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
)

// Kind is what a run is about.
type Kind string

// The kinds.
const (
	// Manifest is a run of a manifest as a whole.
	Manifest Kind = "manifest"
	// Part is a run of some resources of a manifest.
	Part Kind = "part"
	// Request is the run of an ensure request.
	Request Kind = "request"
)

// Most is how many runs of a kind go on at the same time; of repairs that is those of one
// manifest, and of them those that wait for the disk only by themselves: whoever makes some of one
// take long does not hold up those of others, nor do four commands hold up files.
const Most = 4

// Patience is how long the next manifest or request waits for those in hand: they are run
// one after the other, in their order, and just what takes longer does not hold the others
// up.
const Patience = time.Second

// Lanes are the runs of a node: those that go on, and those that wait for them. It is for
// one goroutine at a time. Make it with New.
type Lanes struct {
	// all are in the order in which they entered.
	all []*Lane
	// changed is closed when a run may begin that could not.
	changed chan struct{}
	// entered is how many have so far.
	entered int
}

// New returns lanes without runs.
func NewLanes() *Lanes { return &Lanes{changed: make(chan struct{})} }

// Lane is one run. It blocks no other run before the first Begin: until then it is being prepared,
// which may wait for NATS.
type Lane struct {
	Kind Kind
	// Key is that of the manifest; empty for a request.
	Key string
	// Part are the resources that the run of a part is about.
	Part []model.Ref
	// Turn counts the runs from 1, in the order in which they entered.
	Turn int

	lanes   *Lanes
	entered time.Time
	graph   *graph.Graph
	claims  claims // nil before somebody compares them
	done    map[model.Ref]bool
	running bool
	// blocker holds it up, with a resource, until which has had its turn nothing changes;
	// the zero reference where it is not known.
	blocker   *Lane
	blockedBy model.Ref
}

// String returns what the run is about, for people.
func (l *Lane) String() string {
	switch l.Kind {
	case Request:
		return "a request"
	case Part:
		return "a repair of " + l.Key
	default:
		return l.Key
	}
}

// Enter adds a run behind all others.
func (l *Lanes) Enter(kind Kind, key string, now time.Time) *Lane {
	l.entered++
	lane := &Lane{Kind: kind, Key: key, Turn: l.entered, lanes: l, entered: now, done: map[model.Ref]bool{}}
	l.all = append(l.all, lane)

	return lane
}

// Len returns how many runs there are of a kind, those that wait included.
func (l *Lanes) Len(kind Kind) (count int) {
	for _, lane := range l.all {
		if lane.Kind == kind {
			count++
		}
	}

	return count
}

// Has reports whether there is a run of a manifest as a whole.
func (l *Lanes) Has(key string) bool {
	return slices.ContainsFunc(l.all, func(lane *Lane) bool { return lane.Kind == Manifest && lane.Key == key })
}

// MakesChecks reports whether a run of a manifest, or of a part of it, that goes on makes
// health checks.
func (l *Lanes) MakesChecks(key string) bool {
	return slices.ContainsFunc(l.all, func(lane *Lane) bool { return lane.Key == key && lane.running && hasChecks(lane.graph) })
}

// Admitted returns those of some resources of a manifest, which has the graph g, of which a part may
// enter: a few parts do, so that one that waits does not hold up those that need not.
func (l *Lanes) Admitted(key string, g *graph.Graph, part []model.Ref) []model.Ref {
	quick, others := 0, 0
	for _, lane := range l.all {
		switch {
		case lane.Kind != Part || lane.Key != key:
		case isQuick(lane.graph):
			quick++
		default:
			others++
		}
	}
	switch {
	case quick < Most && others < Most:
		return part
	case quick >= Most && others >= Most:
		return nil
	}

	return slices.DeleteFunc(slices.Clone(part), func(ref model.Ref) bool {
		one, ok := g.Part([]model.Ref{ref})

		return (ok && isQuick(one)) != (quick < Most)
	})
}

// isQuick reports whether a run of a graph waits for the disk only; of none nothing is known. What
// includes others does nothing itself.
func isQuick(g *graph.Graph) bool {
	waits := func(n *graph.Node) bool { return !n.Relations.WaitsForDiskOnly && n.Resource.Type.Include == nil }

	return g != nil && !hasChecks(g) && !slices.ContainsFunc(g.Nodes(), waits)
}

// IsToCome reports whether a run of a manifest, or of a part of it, has a resource before it, or
// works on it. A run of the whole counts once it is prepared.
func (l *Lanes) IsToCome(key string, ref model.Ref) bool {
	return slices.ContainsFunc(l.all, func(lane *Lane) bool {
		if lane.graph == nil {
			return lane.Key == key && slices.Contains(lane.Part, ref)
		}
		return lane.Key == key && !lane.done[ref] && lane.graph.Node(ref) != nil
	})
}

// Next returns from when on another manifest or request may enter: zero where none holds it
// up.
func (l *Lanes) Next() (at time.Time) {
	for _, lane := range l.all {
		if until := lane.entered.Add(Patience); lane.Kind != Part && until.After(at) {
			at = until
		}
	}

	return at
}

// Changed returns a channel that is closed when a run may begin that could not.
func (l *Lanes) Changed() <-chan struct{} { return l.changed }

// Begin begins a run of a graph, unless it must wait for another one, which is returned:
// one that goes on, or entered before. Neither overtakes a run that it would hold up.
func (l *Lane) Begin(g *graph.Graph) (blocker *Lane) {
	l.claims = nil // links may have changed while it waited
	if l.graph != g {
		l.graph = g
		l.lanes.notify() // what it works with may be less than everything
	}
	if blocker = l.Blocker(); blocker == nil {
		l.running = true
	}

	return blocker
}

// Blocker returns what the run would wait for if it began with the graph of the last Begin.
func (l *Lane) Blocker() *Lane {
	l.blocker, l.blockedBy = l.findBlocker()

	return l.blocker
}

func (l *Lane) findBlocker() (*Lane, model.Ref) {
	before, alike := true, 0
	for _, other := range l.lanes.all {
		if other == l {
			before = false
			continue
		}
		if other.graph != nil && (before || other.running) {
			if ref, found := l.conflict(other); found {
				return other, ref
			}
		}
		if other.running && l.isAlike(other) {
			if alike++; alike == Most {
				return other, model.Ref{}
			}
		}
	}

	return nil, model.Ref{}
}

// isAlike reports whether a run that goes on is counted together with this one.
func (l *Lane) isAlike(other *Lane) bool {
	if l.Kind != Part {
		return other.Kind == l.Kind
	}

	return other.Kind == Part && other.Key == l.Key && isQuick(other.graph) == isQuick(l.graph)
}

// Done notes that a resource had its turn: nobody waits for it any more.
func (l *Lane) Done(ref model.Ref) {
	l.done[ref] = true
	delete(l.claims, ref)
	if slices.ContainsFunc(l.lanes.all, func(other *Lane) bool { return other.blocker == l && other.blockedBy == ref }) {
		l.lanes.notify()
	}
}

// Leave ends a run, or its waiting.
func (l *Lane) Leave() {
	l.lanes.all = slices.DeleteFunc(l.lanes.all, func(other *Lane) bool { return other == l })
	l.lanes.notify()
}

func (l *Lanes) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// conflict reports whether a run must not go on beside another one, and returns a resource
// of that because of which; the zero reference where it is because of all.
func (l *Lane) conflict(other *Lane) (because model.Ref, found bool) {
	var related map[model.Ref]bool
	if l.Key != "" && l.Key == other.Key {
		if whole(l.graph) != whole(other.graph) || l.Kind == Manifest && other.Kind == Manifest || hasChecks(l.graph) && hasChecks(other.graph) {
			return model.Ref{}, true
		}
		related = whole(l.graph).Related(refs(l.graph))
	}

	return overlap(l.remaining(), other.remaining(), related)
}

// hasChecks reports whether resources of a graph have health checks, of which the results
// are judged together at the end of a run.
func hasChecks(g *graph.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *graph.Node) bool { return len(n.Resource.Meta().HealthChecks) > 0 })
}

// whole returns the graph that one is a part of, or itself.
func whole(g *graph.Graph) *graph.Graph {
	if w := g.PartOf(); w != nil {
		return w
	}

	return g
}

func refs(g *graph.Graph) []model.Ref {
	out := make([]model.Ref, g.Len())
	for i, n := range g.Nodes() {
		out[i] = n.Ref
	}

	return out
}

// remaining returns the claims of what has not had its turn.
func (l *Lane) remaining() claims {
	if l.claims == nil {
		l.claims = claimsOf(l.graph)
		for ref := range l.done {
			delete(l.claims, ref)
		}
	}

	return l.claims
}
