package fleet

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/musterfleet/muster/fleet/target"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// maxSiblings and maxPackageNames limit the names of facts and packages that are collected for hints. Nodes can choose any
// number of names.
const (
	maxSiblings     = 1000
	maxPackageNames = 20_000
)

// unknown finds the facts, labels, groups and packages of an expression that no node has.
type unknown struct {
	mentions target.Mentions
	facts    []factPath
	// read counts the nodes with facts, inventories the inventories that were read.
	read, inventories int
	// packages are the names of the expression that no inventory has so far.
	packages []string
	// packageNames are names in inventories.
	packageNames map[string]struct{}
}

// factPath records how far nodes have a path of facts.
type factPath struct {
	found bool
	// depth is the length of the longest prefix that a node has.
	depth int
	// siblings are the names that nodes have after that prefix.
	siblings map[string]struct{}
}

func newUnknown(m target.Mentions) *unknown {
	return &unknown{mentions: m, facts: make([]factPath, len(m.Facts)), packages: slices.Clone(m.Packages), packageNames: map[string]struct{}{}}
}

// noteFacts looks for the paths in the facts of a node.
func (u *unknown) noteFacts(facts model.Facts) {
	u.read++
	for i, path := range u.mentions.Facts {
		if p := &u.facts[i]; !p.found {
			p.find(facts, path)
		}
	}
}

// notePackages looks for the packages in the inventory of a node.
func (u *unknown) notePackages(all []model.Package) {
	if u.inventories++; len(u.packages) == 0 {
		return
	}
	for _, p := range all {
		if at := slices.Index(u.packages, p.Name); at >= 0 {
			u.packages = slices.Delete(u.packages, at, at+1)
		}
		if _, has := u.packageNames[p.Name]; !has && len(u.packageNames) < maxPackageNames {
			u.packageNames[strings.Clone(p.Name)] = struct{}{} // p.Name would hold the whole inventory in memory
		}
	}
}

// unknownPackages returns warnings about the packages that no inventory has.
func (u *unknown) unknownPackages(nodes int) (out []string) {
	if u.inventories == 0 {
		return nil
	}
	none := "no node has"
	if u.inventories < nodes {
		none = fmt.Sprintf("none of %d inventories has", u.inventories)
	}
	for _, name := range u.packages {
		out = append(out, fmt.Sprintf("%s the package %q%s", none, name, nearest("", name, u.packageNames)))
	}

	return out
}

// find looks for a path in the facts of a node.
func (p *factPath) find(facts map[string]any, path []string) {
	for depth, name := range path {
		value, has := facts[name]
		if !has {
			p.miss(depth, facts)
			return
		}
		if depth == len(path)-1 {
			p.found = true
			return
		}
		nested, ok := value.(map[string]any)
		if !ok {
			p.miss(depth+1, nil)
			return
		}
		facts = nested
	}
}

// miss records that a node has the path only up to a depth, and other names there.
func (p *factPath) miss(depth int, others map[string]any) {
	if depth > p.depth || p.siblings == nil {
		p.depth, p.siblings = depth, map[string]struct{}{}
	}
	for name := range others {
		if depth == p.depth && len(p.siblings) < maxSiblings {
			p.siblings[name] = struct{}{}
		}
	}
}

// warnings returns warnings about the names that no node has, with the nearest known name.
func (u *unknown) warnings(nodes []model.Node) []string {
	if len(nodes) == 0 {
		return nil
	}
	out := append(u.unknownFacts(len(nodes)), u.unknownPackages(len(nodes))...)

	return append(out, unknownNames(u.mentions, func(yield func(*model.Node) bool) {
		for i := range nodes {
			if !yield(&nodes[i]) {
				return
			}
		}
	})...)
}

// Warnings returns the warnings that need neither facts nor inventories: probable mistakes in the expression, and labels
// and groups that no node has.
func Warnings(e *target.Expression, nodes iter.Seq[*model.Node]) []string {
	return append(slices.Clone(e.Warnings()), unknownNames(e.Mentions(), nodes)...)
}

// unknownNames returns warnings about the labels and groups that no node has.
func unknownNames(m target.Mentions, nodes iter.Seq[*model.Node]) (out []string) {
	labels, groups := map[string]struct{}{}, map[string]struct{}{model.GroupAll: {}}
	for n := range nodes {
		for name := range n.Labels {
			labels[name] = struct{}{}
		}
		for _, group := range n.Groups {
			groups[group] = struct{}{}
		}
	}
	for _, name := range m.Labels {
		if _, has := labels[name]; !has {
			out = append(out, "no node has labels."+name+nearest("labels.", name, labels))
		}
	}
	for _, name := range m.Groups {
		if _, has := groups[name]; !has {
			out = append(out, fmt.Sprintf("no node is in the group %q%s", name, nearest("", name, groups)))
		}
	}

	return out
}

// unknownFacts returns warnings about the paths that no facts have, each with its shortest missing prefix.
func (u *unknown) unknownFacts(nodes int) (out []string) {
	if u.read == 0 {
		return nil
	}
	none := "no node has"
	if u.read < nodes {
		none = fmt.Sprintf("none of %d facts documents has", u.read)
	}
	for i, p := range u.facts {
		if p.found {
			continue
		}
		path := u.mentions.Facts[i]
		missing := path[:min(p.depth+1, len(path))]
		prefix := strings.Join(append([]string{"facts"}, missing[:len(missing)-1]...), ".") + "."
		name := missing[len(missing)-1]
		if text := none + " " + prefix + name + nearest(prefix, name, p.siblings); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}

	return out
}

// nearest returns a hint with the nearest known name, empty if none is near.
func nearest(prefix, name string, known map[string]struct{}) string {
	near := document.Nearest(name, slices.Sorted(maps.Keys(known)))
	if near == "" {
		return ""
	}

	return fmt.Sprintf("; did you mean %s?", said(prefix+near))
}
