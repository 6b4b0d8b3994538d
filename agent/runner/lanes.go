package runner

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/resource"
)

// Kind is the kind of a run.
type Kind string

// The kinds.
const (
	// Manifest is a full run of a manifest.
	Manifest Kind = "manifest"
	// Part is a run of some resources of a manifest.
	Part Kind = "part"
	// Request is the run of an ensure request or a prediction.
	Request Kind = "request"
)

// Most limits the parallel runs of a kind. For partial runs the limit applies to each manifest, and runs
// that wait for the disk only have a separate limit. So slow repairs delay neither other manifests nor
// files.
const Most = 4

// Patience is how long the next full run or request waits for the current ones. Short runs run one after
// the other, in their order. Only longer runs overlap.
const Patience = time.Second

// Lanes holds the runs of a node, running and waiting. Its methods are not safe for concurrent use.
type Lanes struct {
	// all is in the order of Enter.
	all []*Lane
	// changed is closed when a blocked run may begin.
	changed chan struct{}
	entered int
}

// NewLanes returns Lanes without runs.
func NewLanes() *Lanes { return &Lanes{changed: make(chan struct{})} }

// Lane is one run. Before its first Begin it blocks no other run, because its preparation may wait for
// NATS.
type Lane struct {
	Kind Kind
	// Key is the key of the manifest, empty for a request.
	Key string
	// Part lists the resources of a partial run.
	Part []model.Ref
	// Turn numbers the runs from 1, in the order of Enter.
	Turn int

	lanes   *Lanes
	entered time.Time
	graph   *plan.Graph
	claims  claims // nil before the first comparison
	done    map[model.Ref]bool
	running bool
	// blocker blocks this run until its resource blockedBy is done. A zero blockedBy means until a change
	// of the lanes.
	blocker   *Lane
	blockedBy model.Ref
}

// String describes the run for people.
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

// Len returns the number of runs of a kind, including the waiting ones.
func (l *Lanes) Len(kind Kind) (count int) {
	for _, lane := range l.all {
		if lane.Kind == kind {
			count++
		}
	}

	return count
}

// Has reports whether a manifest has a full run.
func (l *Lanes) Has(key string) bool {
	return slices.ContainsFunc(l.all, func(lane *Lane) bool { return lane.Kind == Manifest && lane.Key == key })
}

// MakesChecks reports whether a running run of a manifest makes health checks.
func (l *Lanes) MakesChecks(key string) bool {
	return slices.ContainsFunc(l.all, func(lane *Lane) bool { return lane.Key == key && lane.running && hasChecks(lane.graph) })
}

// Admitted returns the resources of part that a partial run of a manifest may enter with. g is the graph of
// the manifest. Most limits quick and other runs separately, so that waiting runs do not delay quick ones.
func (l *Lanes) Admitted(key string, g *plan.Graph, part []model.Ref) []model.Ref {
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

// isQuick reports whether a run of a graph waits for the disk only. A nil graph is not known and not quick.
// A resource that includes others does no work itself.
func isQuick(g *plan.Graph) bool {
	waits := func(n *plan.Node) bool { return !n.Relations.WaitsForDiskOnly && n.Resource.Type.Include == nil }

	return g != nil && !hasChecks(g) && !slices.ContainsFunc(g.Nodes(), waits)
}

// IsToCome reports whether a run of a manifest still has to process a resource. A full run counts once it
// is prepared.
func (l *Lanes) IsToCome(key string, ref model.Ref) bool {
	return slices.ContainsFunc(l.all, func(lane *Lane) bool {
		if lane.graph == nil {
			return lane.Key == key && slices.Contains(lane.Part, ref)
		}
		return lane.Key == key && !lane.done[ref] && lane.graph.Node(ref) != nil
	})
}

// Next returns when another full run or request may enter; zero means now.
func (l *Lanes) Next() (at time.Time) {
	for _, lane := range l.all {
		if until := lane.entered.Add(Patience); lane.Kind != Part && until.After(at) {
			at = until
		}
	}

	return at
}

// Changed returns a channel that is closed when a blocked run may begin.
func (l *Lanes) Changed() <-chan struct{} { return l.changed }

// Begin begins a run of a graph. If another run blocks it, Begin returns that run. Running runs and runs
// that entered before block a run with overlapping claims.
func (l *Lane) Begin(g *plan.Graph) (blocker *Lane) {
	l.claims = nil // links may have changed
	if l.graph != g {
		l.graph = g
		l.lanes.notify() // its claims are known now
	}
	if blocker = l.Blocker(); blocker == nil {
		l.running = true
	}

	return blocker
}

// Blocker returns the run that blocks this run with the graph of the last Begin.
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

// isAlike reports whether Most limits both runs together.
func (l *Lane) isAlike(other *Lane) bool {
	if l.Kind != Part {
		return other.Kind == l.Kind
	}

	return other.Kind == Part && other.Key == l.Key && isQuick(other.graph) == isQuick(l.graph)
}

// Done records that a resource was processed. It blocks no run any more.
func (l *Lane) Done(ref model.Ref) {
	l.done[ref] = true
	delete(l.claims, ref)
	if slices.ContainsFunc(l.lanes.all, func(other *Lane) bool { return other.blocker == l && other.blockedBy == ref }) {
		l.lanes.notify()
	}
}

// Leave removes a run.
func (l *Lane) Leave() {
	l.lanes.all = slices.DeleteFunc(l.lanes.all, func(other *Lane) bool { return other == l })
	l.lanes.notify()
}

func (l *Lanes) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// conflict reports whether a run must wait for other. It returns the resource of other that causes the
// conflict, or a zero reference if the whole run does.
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

// hasChecks reports whether resources of a graph have health checks. Their results are judged together at
// the end of a run.
func hasChecks(g *plan.Graph) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *plan.Node) bool { return len(n.Resource.Meta().HealthChecks) > 0 })
}

// whole returns the graph that g is a part of, or g.
func whole(g *plan.Graph) *plan.Graph {
	if w := g.PartOf(); w != nil {
		return w
	}

	return g
}

func refs(g *plan.Graph) []model.Ref {
	out := make([]model.Ref, g.Len())
	for i, n := range g.Nodes() {
		out[i] = n.Ref
	}

	return out
}

func (l *Lane) remaining() claims {
	if l.claims == nil {
		l.claims = claimsOf(l.graph)
		for ref := range l.done {
			delete(l.claims, ref)
		}
	}

	return l.claims
}

// exclusive lists the domains that only one run may use at a time. Package managers and the service manager
// do one task after another, and their changes affect each other. Paths are claimed one by one.
const exclusive = resource.Packages | resource.Units

// claim is the part of the machine that a resource uses alone.
type claim struct {
	// everything is set if the claim is unknown before the resource is processed.
	everything bool
	// writes are the paths that the resource may change, including all paths below them. reads are the
	// paths that it depends on.
	writes, reads []string
	// changes and depends are domains.
	changes, depends resource.Domain
}

// claimOf returns the claim of a node. A resource that may change anything, such as a command, claims no
// domain: its author is responsible.
func claimOf(n *plan.Node) claim {
	r := n.Resource
	if r.Excluded != "" {
		return claim{}
	}
	if r.ResolveDeferred != nil || plan.IsOpenEnded(r) {
		return claim{everything: true}
	}
	var c claim
	if r.Type.Writes != resource.Everything {
		c.changes, c.depends = r.Type.Writes&exclusive, r.Type.Reads&exclusive
	}
	for _, p := range n.Relations.Provides {
		if path, ok := pathOf(p.What); ok && !p.Implicit {
			c.writes = append(c.writes, path)
		}
	}
	for _, what := range n.Relations.Removes {
		if path, ok := pathOf(what); ok {
			c.writes = append(c.writes, path)
		}
	}
	var needs []string
	for _, need := range n.Relations.Needs {
		if path, ok := pathOf(need.What); ok {
			needs = append(needs, path)
		}
	}
	c.reads = lowest(needs, c.writes)

	return c
}

// pathOf returns the path in the name of a relation. It returns false if the relation names no path.
func pathOf(what string) (string, bool) {
	path, ok := strings.CutPrefix(what, resource.PathNeed(""))

	return filepath.Clean(path), ok
}

// lowest returns the paths of needs that are not above another path of needs or others. A resource needs
// the directories above a path, but not their other content.
func lowest(needs, others []string) []string {
	above := map[string]bool{"/": true}
	for _, paths := range [][]string{needs, others} {
		for _, path := range paths {
			for dir := range ancestors(path) {
				above[dir] = true
			}
		}
	}
	var out []string
	for _, path := range needs {
		if !above[path] {
			out = append(out, path)
		}
	}

	return out
}

// ancestors yields the directories above an absolute path, nearest first.
func ancestors(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for path != "/" && path != "." {
			path = filepath.Dir(path)
			if !yield(path) {
				return
			}
		}
	}
}

type claims map[model.Ref]claim

// claimsOf returns the claims of a graph. Paths are claimed as written and after links are followed.
func claimsOf(g *plan.Graph) claims {
	out := make(claims, g.Len())
	links := paths.Links{}
	for _, n := range g.Nodes() {
		c := claimOf(n)
		c.writes, c.reads = follow(links, c.writes), follow(links, c.reads)
		out[n.Ref] = c
	}

	return out
}

// follow returns paths, with their locations and targets after links are followed.
func follow(links paths.Links, all []string) []string {
	out := all
	for _, path := range all {
		at, target := links.Resolve(path)
		for _, other := range []string{at, target} {
			if !slices.Contains(out, other) {
				out = append(out, other)
			}
		}
	}

	return out
}

type indexed struct {
	everything       bool
	changes, depends resource.Domain
	writes, reads    pathSet
}

type pathSet struct{ in, above map[string]bool }

func newPathSet() pathSet { return pathSet{map[string]bool{}, map[string]bool{}} }

func (s pathSet) add(paths []string) {
	for _, path := range paths {
		s.in[path] = true
		for dir := range ancestors(path) {
			s.above[dir] = true
		}
	}
}

// touches reports whether one of paths is in the set, or above or below a path of the set.
func (s pathSet) touches(paths []string) bool {
	if len(s.in) == 0 {
		return false
	}
	for _, path := range paths {
		if s.in[path] || s.above[path] {
			return true
		}
		for dir := range ancestors(path) {
			if s.in[dir] {
				return true
			}
		}
	}

	return false
}

func index(all claims) indexed {
	out := indexed{writes: newPathSet(), reads: newPathSet()}
	for _, c := range all {
		out.everything = out.everything || c.everything
		out.changes |= c.changes
		out.depends |= c.depends
		out.writes.add(c.writes)
		out.reads.add(c.reads)
	}

	return out
}

// meets reports whether a claim conflicts with the indexed claims: both use the same thing, and one changes
// it.
func (x indexed) meets(c claim) bool {
	return x.everything || c.everything ||
		x.changes.Overlaps(c.changes|c.depends) || c.changes.Overlaps(x.depends) ||
		x.writes.touches(c.writes) || x.writes.touches(c.reads) || x.reads.touches(c.writes)
}

// overlap returns a resource of b that prevents a run with the claims a from working beside b. related are
// further resources that a uses.
func overlap(a, b claims, related map[model.Ref]bool) (ref model.Ref, found bool) {
	x := index(a)
	for ref, c := range b {
		if _, same := a[ref]; same || related[ref] || x.meets(c) {
			return ref, true
		}
	}

	return model.Ref{}, false
}
