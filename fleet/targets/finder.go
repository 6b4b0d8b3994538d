package targets

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

const (
	// maxSiblings and maxKnown limit the names that are collected for hints. Nodes can choose any number of names.
	maxSiblings = 1000
	maxKnown    = 20_000
	// maxElements limits the elements of lists that a finder visits. It gives no warning about paths that need more.
	maxElements = 10_000_000
	// maxWarnings is the maximum number of warnings about the names of a space.
	maxWarnings = 10
	// maxListed is the maximum number of known names that a warning lists.
	maxListed = 5
	// maxHint is the maximum length of a hint.
	maxHint = 1000
)

// Finder finds the names of a set that a fleet does not have. One goroutine uses it.
type Finder struct {
	set    Mentions
	spaces map[Space]*names
	facts  []progress
	// documents and inventories count the nodes with facts and with an inventory.
	documents, inventories int
	// elements counts the visited elements of lists.
	elements int
}

// names are the names of a space.
type names struct {
	// exact are the constants that are no name so far, converted the constants that are compared with converted names.
	exact     map[string]struct{}
	converted map[Mention]struct{}
	// known has names for hints, each with the text of the hint.
	known map[string]string
}

// NewFinder returns a finder of the names of a set.
func NewFinder(s Mentions) *Finder {
	f := &Finder{set: s, spaces: map[Space]*names{}, facts: make([]progress, len(s.Facts))}
	for _, n := range s.Names {
		of := f.spaces[n.Space]
		if of == nil {
			of = &names{exact: map[string]struct{}{}, converted: map[Mention]struct{}{}, known: map[string]string{}}
			f.spaces[n.Space] = of
		}
		if n.conversion == "" {
			of.exact[n.Text] = struct{}{}
		} else {
			of.converted[n] = struct{}{}
		}
	}
	f.Add(SpaceGroup, model.GroupAll)

	return f
}

// Needs reports whether the set has unknown names of a space.
func (f *Finder) Needs(space Space) bool { return f.spaces[space].isOpen() }

// Add adds a name that the fleet has.
func (f *Finder) Add(space Space, name string) {
	if n := f.spaces[space]; n.isOpen() {
		n.add(name)
	}
}

// AddKey adds the key of an assignment. A warning about its last part suggests the key.
func (f *Finder) AddKey(key string) {
	n := f.spaces[SpaceKey]
	if !n.isOpen() {
		return
	}
	n.add(key)
	if _, name, ok := model.SplitKey(key); ok {
		n.hint(name, key)
	}
}

// isOpen reports whether the space has unknown names.
func (n *names) isOpen() bool { return n != nil && len(n.exact)+len(n.converted) > 0 }

func (n *names) add(name string) {
	if hint, has := n.known[name]; has && hint == name {
		return
	}
	delete(n.exact, name)
	for c := range n.converted {
		if c.Is(name) {
			delete(n.converted, c)
		}
	}
	n.hint(name, name)
}

func (n *names) hint(name, text string) {
	if _, has := n.known[name]; !has && name != "" && len(n.known) < maxKnown {
		n.known[strings.Clone(name)] = strings.Clone(text) // a part would keep the whole document in memory
	}
}

// AddNode adds the names of a node.
func (f *Finder) AddNode(n *model.Node) {
	f.Add(SpaceNode, n.Node)
	f.Add(SpaceHost, n.Host)
	if f.Needs(SpaceGroup) {
		for _, group := range n.Groups {
			f.Add(SpaceGroup, group)
		}
	}
	if f.Needs(SpaceLabel) {
		for name := range n.Labels {
			f.Add(SpaceLabel, name)
		}
	}
	if f.Needs(SpaceKey) {
		for key := range n.Manifests {
			f.AddKey(key)
		}
	}
}

// AddFacts adds the facts of a node.
func (f *Finder) AddFacts(facts model.Facts) {
	f.documents++
	for i, path := range f.set.Facts {
		if p := &f.facts[i]; !p.found {
			f.find(p, map[string]any(facts), path, 0)
		}
	}
}

// AddPackages adds the inventory of a node.
func (f *Finder) AddPackages(all []model.Package) {
	f.inventories++
	for _, space := range [...]Space{SpacePackage, SpaceManager, SpaceArch} {
		n := f.spaces[space]
		for i := 0; i < len(all) && n.isOpen(); i++ {
			n.add(propertyOf(&all[i], space))
		}
	}
}

func propertyOf(p *model.Package, space Space) string {
	switch space {
	case SpaceManager:
		return p.Manager
	case SpaceArch:
		return p.Arch
	default:
		return p.Name
	}
}

// formats has the warning about a name of each space, in the order of the warnings.
var formats = [...]struct {
	Space
	format, prefix string
}{
	{SpacePackage, `%s the package %q`, ""},
	{SpaceManager, `%s packages of the manager %q`, ""},
	{SpaceArch, `%s packages of the architecture %q`, ""},
	{SpaceLabel, `%s labels.%s`, "labels."},
	{SpaceGroup, `no node is in the group %[2]q`, ""},
	{SpaceNode, `%s the name %q`, ""},
	{SpaceHost, `%s the host %q`, ""},
	{SpaceManifest, `%s the manifest %q`, ""},
	{SpaceKey, `%s the manifest %q`, ""},
	{SpaceType, `%[2]q is not a resource type`, ""},
	{SpaceProvider, `%[2]q is not a provider`, ""},
}

// Warnings returns warnings about the names that none of some nodes has, with the nearest known name.
func (f *Finder) Warnings(nodes int) []string {
	if nodes == 0 {
		return nil
	}
	out := f.unknownFacts(nodes)
	for _, text := range formats {
		if !f.Needs(text.Space) {
			continue
		}
		none := "no node has"
		switch text.Space {
		case SpacePackage, SpaceManager, SpaceArch:
			if f.inventories == 0 {
				continue
			}
			if f.inventories < nodes {
				none = fmt.Sprintf("none of %d inventories has", f.inventories)
			}
		}
		unknown, known := f.unknown(text.Space), slices.Sorted(maps.Keys(f.spaces[text.Space].known))
		for _, name := range unknown[:min(len(unknown), maxWarnings)] {
			out = append(out, fmt.Sprintf(text.format, none, name)+f.nearest(text.Space, text.prefix, name, known))
		}
		if more := len(unknown) - maxWarnings; more > 0 {
			out = append(out, fmt.Sprintf("%s %d more of these names", none, more))
		}
	}

	return out
}

// unknown returns the constants of a space that are no name, in the order of the expression.
func (f *Finder) unknown(space Space) (out []string) {
	n := f.spaces[space]
	for _, name := range f.set.Names {
		if name.Space != space {
			continue
		}
		_, isExact := n.exact[name.Text]
		_, isConverted := n.converted[name]
		if (isExact && name.conversion == "" || isConverted) && !slices.Contains(out, name.Text) {
			out = append(out, name.Text)
		}
	}

	return out
}

// nearest returns a hint with the nearest known name. Without one, it lists the managers and architectures if they are few.
func (f *Finder) nearest(space Space, prefix, name string, known []string) string {
	near := document.Nearest(name, known)
	switch {
	case near != "":
		return hint(prefix + f.spaces[space].known[near])
	case (space == SpaceManager || space == SpaceArch) && len(known) > 0 && len(known) <= maxListed:
		return "; known: " + strings.Join(known, ", ")
	default:
		return ""
	}
}

func hint(name string) string {
	if len(name) > maxHint {
		return ""
	}

	return fmt.Sprintf("; did you mean %s?", name)
}

// unknownFacts returns warnings about the paths that no facts have, each with its shortest missing prefix.
func (f *Finder) unknownFacts(nodes int) (out []string) {
	if f.documents == 0 {
		return nil
	}
	none := "no node has"
	if f.documents < nodes {
		none = fmt.Sprintf("none of %d facts documents has", f.documents)
	}
	for i, p := range f.facts {
		missing := f.set.Facts[i][:p.depth+1]
		last := missing[p.depth]
		if p.found || last.IsAny { // the lists of all nodes may be empty
			continue
		}
		text := none + " " + missing.String()
		if !last.IsIndex {
			if near := document.Nearest(last.Key, slices.Sorted(maps.Keys(p.siblings))); near != "" {
				text += hint(append(slices.Clone(missing[:p.depth]), Step{Key: near}).String())
			}
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}

	return out
}

// progress records how far nodes have a path of facts.
type progress struct {
	found bool
	// depth is the length of the longest prefix that a node has.
	depth int
	// siblings are the names that nodes have after that prefix.
	siblings map[string]struct{}
}

// find looks for the rest of a path, from a depth on, in a value.
func (f *Finder) find(p *progress, value any, path Path, depth int) {
	if depth == len(path) || f.elements > maxElements {
		p.found = true
		return
	}
	step := path[depth]
	switch v := value.(type) {
	case map[string]any:
		if below, has := v[step.Key]; has && !step.IsIndex && !step.IsAny {
			f.find(p, below, path, depth+1)
			return
		}
		p.miss(depth, v)
		return
	case []any:
		switch {
		case step.IsMember:
			p.found = true
			return
		case step.IsIndex && step.Index >= 0 && step.Index < len(v):
			f.find(p, v[step.Index], path, depth+1)
			return
		case step.IsAny:
			p.miss(depth, nil)
			for i := 0; i < len(v) && !p.found; i++ {
				f.elements++
				f.find(p, v[i], path, depth+1)
			}
			return
		}
	}
	p.miss(depth, nil)
}

// miss records that a node has the path only up to a depth, and other names there.
func (p *progress) miss(depth int, others map[string]any) {
	if depth > p.depth || p.siblings == nil {
		p.depth, p.siblings = depth, map[string]struct{}{}
	}
	if depth < p.depth {
		return
	}
	for name := range others {
		if len(p.siblings) >= maxSiblings {
			return
		}
		p.siblings[name] = struct{}{}
	}
}
