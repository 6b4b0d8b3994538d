package runner

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/resource"
)

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
func claimOf(n *graph.Node) claim {
	r := n.Resource
	if r.Excluded != "" {
		return claim{}
	}
	if r.ResolveDeferred != nil || graph.IsOpenEnded(r) {
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

// claims are the claims of the unprocessed resources of a run.
type claims map[model.Ref]claim

// claimsOf returns the claims of a graph. Paths are claimed as written and after links are followed.
func claimsOf(g *graph.Graph) claims {
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

// indexed holds claims by path.
type indexed struct {
	everything       bool
	changes, depends resource.Domain
	writes, reads    pathSet
}

// pathSet holds paths and the directories above them.
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
