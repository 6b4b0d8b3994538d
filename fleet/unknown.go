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

// maxSiblings bounds the names that are collected for a hint: nodes choose them.
const maxSiblings = 1000

// maxPackageNames bounds the names of packages that are collected for a hint.
const maxPackageNames = 20_000

// unknown finds the facts, labels, groups and packages of an expression that no node has.
type unknown struct {
	mentions target.Mentions
	facts    []factPath
	// read counts the nodes with facts that were read.
	read int
	// packages are the names of the expression that no inventory has, of those that were read,
	// and packageNames the names that inventories have.
	packages     []string
	inventories  int
	packageNames map[string]struct{}
}

// factPath records where a path of facts ends on the nodes.
type factPath struct {
	found bool
	// depth is how many of its names a node has at most, siblings are the names beside the
	// first one that is missing there.
	depth    int
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
			p.look(facts, path)
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
			u.packageNames[strings.Clone(p.Name)] = struct{}{} // a copy does not hold the inventory
		}
	}
}

// unknownPackages names the packages that no inventory has.
func (u *unknown) unknownPackages(nodes int) (out []string) {
	if u.inventories == 0 {
		return nil
	}
	whose := "no node has"
	if u.inventories < nodes {
		whose = fmt.Sprintf("none of %d inventories has", u.inventories)
	}
	for _, name := range u.packages {
		out = append(out, fmt.Sprintf("%s the package %q%s", whose, name, nearest("", name, u.packageNames)))
	}

	return out
}

// look looks for a path in the facts of a node.
func (p *factPath) look(facts map[string]any, path []string) {
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
		within, ok := value.(map[string]any)
		if !ok {
			p.miss(depth+1, nil)
			return
		}
		facts = within
	}
}

// miss notes the names that are there where a path ends.
func (p *factPath) miss(depth int, there map[string]any) {
	if depth > p.depth || p.siblings == nil {
		p.depth, p.siblings = depth, map[string]struct{}{}
	}
	for name := range there {
		if depth == p.depth && len(p.siblings) < maxSiblings {
			p.siblings[name] = struct{}{}
		}
	}
}

// warnings names what none of the nodes has, with the nearest name.
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

// Warnings returns those warnings of a selection that need neither facts nor inventories: probable mistakes in the
// expression, and labels and groups that no node has.
func Warnings(e *target.Expression, nodes iter.Seq[*model.Node]) []string {
	return append(slices.Clone(e.Warnings()), unknownNames(e.Mentions(), nodes)...)
}

// unknownNames names the labels and groups that no node has, with the nearest name.
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

// unknownFacts names the paths that no facts have, of each the shortest part that is missing.
func (u *unknown) unknownFacts(nodes int) (out []string) {
	if u.read == 0 {
		return nil
	}
	whose := "no node has"
	if u.read < nodes {
		whose = fmt.Sprintf("none of the %d nodes whose facts were read has", u.read)
	}
	for i, p := range u.facts {
		if p.found {
			continue
		}
		path := u.mentions.Facts[i]
		missing := path[:min(p.depth+1, len(path))]
		prefix := strings.Join(append([]string{"facts"}, missing[:len(missing)-1]...), ".") + "."
		name := missing[len(missing)-1]
		if text := whose + " " + prefix + name + nearest(prefix, name, p.siblings); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}

	return out
}

// nearest suggests a name, nothing where none is near.
func nearest(prefix, name string, known map[string]struct{}) string {
	near := document.Nearest(name, slices.Sorted(maps.Keys(known)))
	if near == "" {
		return ""
	}

	return fmt.Sprintf("; did you mean %s?", said(prefix+near))
}
