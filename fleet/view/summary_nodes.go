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
	// By is the writer that the first of the nodes saw.
	By string `json:"by"`
	Members
}

// flappingID identifies a resource on all nodes.
type flappingID struct{ name, resource string }

// Clock is a node with a wrong clock.
type Clock struct {
	Node string `json:"node"`
	model.ClockOffset
}

// Outbox is a node with unpublished reports.
type Outbox struct {
	Node    string `json:"node"`
	Reports int    `json:"reports"`
}

// Message is a problem that a node reports about itself. A long message is cut.
type Message struct {
	Node    string `json:"node"`
	Message string `json:"message"`
}

// Version is a version of muster on nodes.
type Version struct {
	Version string `json:"version"`
	// Older means that it is earlier than the reference version.
	Older bool `json:"older"`
	// Current means that it is the reference version.
	Current bool `json:"current"`
	Members
}

// flaps counts the flapping resources of a node.
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

// maxVersion limits the bytes of a version.
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

// sortedVersions returns versions, newest first, and marks versions that are earlier than or equal to the
// given one. A node could claim any version, so the newest claimed version is no reference.
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

// IsOlder reports whether a version is earlier than another. An invalid version is not.
func IsOlder(version, current string) bool {
	a, b := semverOf(version), semverOf(current)

	return semver.IsValid(a) && semver.IsValid(b) && semver.Compare(a, b) < 0
}

// semverOf returns a version in the form of semver.
func semverOf(version string) string { return "v" + strings.TrimPrefix(version, "v") }
