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

// exclusive are the domains in which one run at a time works: package managers and the
// service manager do one thing after another, and their changes affect each other. What
// is changed of paths is claimed by path.
const exclusive = resource.Packages | resource.Units

// claim is what one resource of a run needs for itself.
type claim struct {
	// everything is that it is not known before its turn.
	everything bool
	// writes are the paths that it may change, with all below them, and reads those that
	// it depends on.
	writes, reads []string
	// changes and depends are domains.
	changes, depends resource.Domain
}

// claimOf returns the claim of a node. Of a type that runs whatever its manifest says, such
// as a command, no domain is claimed: its author knows what it does.
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

// pathOf returns the path that a relation names, and false for one that names none.
func pathOf(what string) (string, bool) {
	path, ok := strings.CutPrefix(what, resource.PathNeed(""))

	return filepath.Clean(path), ok
}

// lowest returns the paths of needs that are above no other one, nor above one of others:
// the directories on the way to a path are needed, and what is in them is not.
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

// ancestors yields the directories above an absolute path, the nearest first.
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

// claims are those of the resources of a run that have not had their turns.
type claims map[model.Ref]claim

// claimsOf returns the claims of a graph, with the paths as they are and where links lead.
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

// follow returns paths, and beside them where they are and lead after following links.
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

// indexed are claims by their paths.
type indexed struct {
	everything       bool
	changes, depends resource.Domain
	writes, reads    pathSet
}

// pathSet are paths, and the directories above them.
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

// touches reports whether any of paths is one of the set, or above or below one.
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

// meets reports whether a claim is about something of what is indexed, where one of the two
// changes it.
func (x indexed) meets(c claim) bool {
	return x.everything || c.everything ||
		x.changes.Overlaps(c.changes|c.depends) || c.changes.Overlaps(x.depends) ||
		x.writes.touches(c.writes) || x.writes.touches(c.reads) || x.reads.touches(c.writes)
}

// overlap returns a resource of b because of which a run with the claims a must not go on
// beside it. related are further resources that a works with.
func overlap(a, b claims, related map[model.Ref]bool) (ref model.Ref, found bool) {
	x := index(a)
	for ref, c := range b {
		if _, same := a[ref]; same || related[ref] || x.meets(c) {
			return ref, true
		}
	}

	return model.Ref{}, false
}
