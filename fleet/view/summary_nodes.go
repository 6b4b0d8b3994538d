package view

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// Flapping is a resource of a manifest that flaps on nodes.
type Flapping struct {
	Manifest string `json:"manifest"`
	Resource string `json:"resource"`
	// By is who was seen to write it on the first of them.
	By string `json:"by"`
	Members
}

// flappingID is what a resource has in common on all nodes.
type flappingID struct{ name, resource string }

// Clock is a node whose clock apparently differs from the server's.
type Clock struct {
	Node string `json:"node"`
	model.ClockOffset
}

// Outbox is a node with reports that wait.
type Outbox struct {
	Node    string `json:"node"`
	Reports int    `json:"reports"`
}

// Message is what a node says is wrong with it, cut where it is long.
type Message struct {
	Node    string `json:"node"`
	Message string `json:"message"`
}

// Version is a version of muster that nodes have.
type Version struct {
	Version string `json:"version"`
	// Older reports whether it is earlier than the one that it was compared with.
	Older bool `json:"older"`
	// Current reports whether it is that one.
	Current bool `json:"current"`
	Members
}

// flaps counts what flaps on a node.
func (c *counter) flaps(n *model.Node) {
	for _, f := range n.Flapping[:min(len(n.Flapping), model.MaxFlapping)] {
		_, name, err := fleet.ParseKey(f.Manifest)
		if err != nil {
			name = firstLine(f.Manifest, maxText)
		}
		id := flappingID{name, firstLine(f.Resource.String(), maxText)}
		known := c.flapping[id]
		if known == nil {
			known = &Flapping{Manifest: id.name, Resource: id.resource, By: firstLine(f.By(), maxText)}
			c.flapping[id] = known
		}
		known.add(n.Node)
	}
}

func (c *counter) sortedFlapping() []Flapping {
	out := []Flapping{}
	for _, f := range c.flapping {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b Flapping) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Manifest, b.Manifest), cmp.Compare(a.Resource, b.Resource))
	})

	return out
}

// maxVersion is how many bytes of a version count.
const maxVersion = 40

// version counts the version of a node.
func (c *counter) version(n *model.Node) {
	text := strings.ToValidUTF8(n.Version[:min(len(n.Version), maxVersion)], "")
	v := c.versions[text]
	if v == nil {
		v = &Version{Version: text}
		c.versions[text] = v
	}
	v.add(n.Node)
}

// sortedVersions returns versions, the newest first, with those marked that are earlier than
// one given, or that one. A node could claim any version, so none of theirs counts as the newest there is.
func sortedVersions(versions map[string]*Version, current string) []Version {
	out := []Version{}
	for _, v := range versions {
		v.Older, v.Current = IsOlder(v.Version, current), strings.TrimPrefix(v.Version, "v") == strings.TrimPrefix(current, "v")
		out = append(out, *v)
	}
	slices.SortFunc(out, func(a, b Version) int {
		return cmp.Or(semver.Compare(semverOf(b.Version), semverOf(a.Version)), cmp.Compare(a.Version, b.Version))
	})

	return out
}

// IsOlder reports whether a version is earlier than another one; none is that is no number.
func IsOlder(version, current string) bool {
	a, b := semverOf(version), semverOf(current)

	return semver.IsValid(a) && semver.IsValid(b) && semver.Compare(a, b) < 0
}

// number returns a version as semver has it.
func semverOf(version string) string { return "v" + strings.TrimPrefix(version, "v") }
