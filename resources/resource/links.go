package resource

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// Links are the names of a resource and its references to others.
type Links struct {
	Ref model.Ref
	// Alias is empty if there is none.
	Alias string
	Pos   model.Position
	Needs []Reference
	// Element is the element of each that the resource is for; empty for none.
	Element string
	// Repeats reports whether several resources may have the name.
	Repeats bool
	// Resource is nil while only its links are known. Included resources wait for the needs of this
	// resource, and this resource waits for them.
	Resource *Resource
}

// LinksOf returns the links of a resource, its references at its own position.
func LinksOf(r *Resource) Links {
	meta := r.Meta()
	out := Links{Ref: r.Ref(), Alias: meta.Alias, Pos: r.Pos, Resource: r}
	for i, ref := range slices.Concat(meta.Require, meta.Subscribe) {
		property := "require"
		if i >= len(meta.Require) {
			property = "subscribe"
		}
		out.Needs = append(out.Needs, Reference{Ref: ref, Property: property, Pos: r.Pos})
	}

	return out
}

// Names returns the names of the resource.
func (l Links) Names() []model.Ref {
	if l.Alias == "" || l.Alias == l.Ref.Name {
		return []model.Ref{l.Ref}
	}

	return []model.Ref{l.Ref, {Type: l.Ref.Type, Name: l.Alias}}
}

// CheckLinks reports all problems of the names and references of resources, in the order of declaration:
// duplicate names (except of identical resources), references to unknown resources and to the resource
// itself, and cycles, each resource in one. known reports whether a reference to an unknown resource is
// valid; nil allows none.
func CheckLinks(all []Links, known func(model.Ref) bool) model.Problems {
	c := linkCheck{all: all, known: known, byRef: make(map[model.Ref]int, len(all)), needs: make([][]int, len(all)), children: map[[2]int]bool{}, state: make([]visit, len(all))}
	for i := range all {
		for _, name := range all[i].Names() {
			c.name(i, name)
		}
	}
	c.canonicalNames()
	c.claims()
	for i := range all {
		c.connect(i)
	}
	c.include()
	for i := range all {
		c.walk(i)
	}

	return c.problems
}

// linkCheck is one call of CheckLinks. Indexes identify resources.
type linkCheck struct {
	all   []Links
	known func(model.Ref) bool
	byRef map[model.Ref]int
	needs [][]int
	// children are the needs that exist because one resource includes the other.
	children map[[2]int]bool
	problems model.Problems
	// names are all names, for hints; set when first needed.
	names []string
	// compared is the number of comparisons of unknown names.
	compared int

	state []visit
	path  []int
}

type visit uint8

const (
	unseen visit = iota
	onPath
	done
	// reported means that it is on the path, and in a reported cycle.
	reported
)

func (c *linkCheck) name(i int, ref model.Ref) {
	first, taken := c.byRef[ref]
	if !taken {
		c.byRef[ref] = i
		return
	}
	a, b := c.all[first].Resource, c.all[i].Resource
	switch pos := c.all[i].Pos; {
	case pos == c.all[first].Pos && c.all[i].Element != c.all[first].Element:
		c.problems.Add(pos, "make the name depend on `each.key`", "%s is declared twice, by the elements %s and %s of `each`", ref, c.all[first].Element, c.all[i].Element)
		return
	case a != nil && b != nil && a.IsSame(b):
		return
	case (a == nil || b == nil) && c.all[first].Repeats && c.all[i].Repeats:
		return // which of them it is, is unknown
	case pos == c.all[first].Pos && !pos.IsZero():
		c.problems.Add(pos, "make the name depend on the data, or include the manifest once", "%s is declared differently by two inclusions of %s", ref, pos.File)
		return
	}
	c.problems.Add(c.all[i].Pos, "keep one of them, or give one another name", "%s is declared twice, first at %s", ref, c.all[first].Pos)
}

func (c *linkCheck) canonicalNames() {
	first := map[model.Ref]int{}
	for i, l := range c.all {
		if l.Resource == nil || l.Resource.Excluded != "" {
			continue
		}
		spec, ok := l.Resource.Spec.(CanonicalNamer)
		if !ok {
			continue
		}
		ref := model.Ref{Type: l.Ref.Type, Name: spec.CanonicalName()}
		at, taken := first[ref]
		if !taken {
			first[ref] = i
		} else if c.all[at].Ref != l.Ref {
			c.problems.Add(l.Pos, "keep one of them", "%s is declared twice, first as %s at %s", l.Ref, c.all[at].Ref, c.all[at].Pos)
		}
	}
}

func (c *linkCheck) claims() {
	taken := PathClaims{}
	for _, l := range c.all {
		taken.problem(&c.problems, l.Resource)
		taken.Add(l.Resource)
	}
}

func (c *linkCheck) connect(i int) {
	for _, need := range c.all[i].Needs {
		dep, found := c.byRef[need.Ref]
		switch {
		case found && dep == i:
			c.problems.Add(need.Pos, "remove the reference", "%s waits for itself by `%s`", c.all[i].Ref, need.Property)
		case found:
			c.needs[i] = append(c.needs[i], dep)
		case c.known == nil || !c.known(need.Ref):
			c.problems.Add(need.Pos, c.near(i, need.Ref), "`%s` names %s, which is not declared", need.Property, need.Ref)
		}
	}
}

// include makes included resources wait for the needs of the including resource, and the including
// resource wait for them. A resource that is also declared elsewhere gets no additional needs.
func (c *linkCheck) include() {
	within := make([]int, len(c.all))
	own := make([][]int, len(c.all))
	for i := range c.all {
		within[i], own[i] = -1, slices.Clone(c.needs[i])
	}
	for i, l := range c.all {
		if l.Resource == nil {
			continue
		}
		for _, child := range l.Resource.Children {
			at, found := c.byRef[child.Ref()]
			if found && c.all[at].Resource == child {
				within[at] = i
			}
			if found {
				c.needs[i] = append(c.needs[i], at)
				c.children[[2]int{i, at}] = true
			}
		}
	}
	for i := range c.all {
		for outer, levels := within[i], 0; outer >= 0 && levels < len(c.all); outer, levels = within[outer], levels+1 {
			c.needs[i] = append(c.needs[i], own[outer]...)
		}
	}
}

// maxComparisons limits the comparisons of unknown names with known names for hints. A large manifest may
// have many of both.
const maxComparisons = 200_000

// near returns the hint for a reference to an unknown resource, unless hints would take too long.
func (c *linkCheck) near(i int, ref model.Ref) string {
	if c.compared += len(c.byRef); c.compared > maxComparisons && c.compared > len(c.byRef) {
		return ""
	}
	if c.names == nil {
		for known := range c.byRef {
			c.names = append(c.names, known.String())
		}
		slices.Sort(c.names)
	}

	own := c.all[i]
	others := slices.DeleteFunc(slices.Clone(c.names), func(name string) bool {
		return name == own.Ref.String() || own.Alias != "" && name == model.Ref{Type: own.Ref.Type, Name: own.Alias}.String()
	})

	return document.DidYouMean(ref.String(), others)
}

// walk follows the needs of a resource. A need on the path closes a cycle.
func (c *linkCheck) walk(i int) {
	if c.state[i] != unseen {
		return
	}
	c.state[i] = onPath
	c.path = append(c.path, i)
	for _, dep := range c.needs[i] {
		if c.state[dep] == onPath {
			c.reportCycle(c.path[slices.Index(c.path, dep):])
		}
		c.walk(dep)
	}
	c.path = c.path[:len(c.path)-1]
	c.state[i] = done
}

// reportCycle reports a cycle, with the position of each resource, unless a cycle with one of them was
// reported.
func (c *linkCheck) reportCycle(cycle []int) {
	old := slices.ContainsFunc(cycle, func(i int) bool { return c.state[i] == reported })
	c.state[cycle[0]] = reported
	if old {
		return
	}
	var steps []string
	included := true
	for n, i := range append(slices.Clone(cycle), cycle[0]) {
		c.state[i] = reported
		steps = append(steps, fmt.Sprintf("%s (%s)", c.all[i].Ref, c.all[i].Pos))
		included = included && (n == 0 || c.children[[2]int{cycle[n-1], i}])
	}
	what, hint := "the resources wait for each other", "remove one of these references"
	if included {
		what, hint = "a manifest includes itself", "remove one of these resources"
	}
	c.problems.Add(c.all[cycle[0]].Pos, hint, "%s: %s", what, strings.Join(steps, " -> "))
}
