package resource

import (
	"path/filepath"
	"slices"
	"strings"
)

// Relations are things that a resource provides and needs, in words that all types share, such as
// path:/etc/app. A resource with a need runs after the provider of the need.
type Relations struct {
	Provides []Provision
	Needs    []Need
	// Removes are things that other resources may provide. They are gone after the change.
	Removes []string
	// SkipIfExists are things whose existence makes nothing due, such as the path in creates. If an
	// earlier resource would provide or remove one of them, noop reports an unknown result. They do
	// not order resources.
	SkipIfExists []string
	// SkipIfAbsent are things whose absence makes nothing due, such as the path in removes. They affect
	// noop and order as SkipIfExists does.
	SkipIfAbsent []string
	// WaitsForDiskOnly means that a change runs no program and reaches no network.
	WaitsForDiskOnly bool
}

// Provision is something that a resource provides.
type Provision struct {
	What string
	// Implicit means that a change also creates it if it is missing, such as the directories above
	// a path. It does not order resources: if a resource misses it during the run, its implicit creator
	// runs first.
	Implicit bool
}

// Need is something that a resource needs.
type Need struct {
	What string
	// All needs every provider: the removal of a directory needs the removal of each entry. Otherwise
	// one provider is enough.
	All bool
	// ReadsContent means that the resource is compared with the content of the need, such as the source of
	// a file. If an earlier resource would change the need, noop reports an unknown result.
	ReadsContent bool
}

// IsGate reports whether a resource with this need does not run after its provider failed. This applies to
// paths, such as the directory of a file.
func (n Need) IsGate() bool { return strings.HasPrefix(n.What, PathNeed("")) && !n.All }

// Provides returns words as provisions.
func Provides(words ...string) []Provision {
	out := slices.Grow([]Provision(nil), len(words))
	for _, word := range words {
		out = append(out, Provision{What: word})
	}

	return out
}

// ProvidesAbove returns the directories above a path, as implicit provisions.
func ProvidesAbove(path string) []Provision {
	out := Provides(above(path)...)
	for i := range out {
		out[i].Implicit = true
	}

	return out
}

// Needs returns words as needs.
func Needs(words ...string) []Need {
	out := slices.Grow([]Need(nil), len(words))
	for _, word := range words {
		out = append(out, Need{What: word})
	}

	return out
}

// NeedsAbove returns the needs for the directories above a path.
func NeedsAbove(path string) []Need { return Needs(above(path)...) }

// above returns the words for the directories above a path, the nearest first. They are slices of the
// first word, so they need no memory.
func above(path string) []string {
	parent := filepath.Dir(path)
	nearest := PathNeed(parent)
	out := make([]string, 0, strings.Count(parent, "/"))
	for parent != "/" && parent != "." && parent != "" {
		out = append(out, nearest[:len(PathNeed(""))+len(parent)])
		parent = parent[:max(strings.LastIndexByte(parent, '/'), 0)]
	}

	return out
}

// PathNeed returns the word for something at a path.
func PathNeed(path string) string { return "path:" + path }

// UserNeed returns the word for a user.
func UserNeed(name string) string { return "user:" + name }

// GroupNeed returns the word for a group.
func GroupNeed(name string) string { return "group:" + name }

// MaskNeed returns the word for a mask, the link to /dev/null in the place of a unit file.
func MaskNeed(path string) string { return "mask:" + path }

// EmptiedNeed returns the word for a directory without entries.
func EmptiedNeed(directory string) string { return "emptied:" + directory }

// Domain is a part of the machine that states describe and changes alter. A
// change invalidates every state of its domains. Domains are combined with |.
type Domain uint8

// The domains.
const (
	Paths Domain = 1 << iota
	Packages
	Units
	Accounts
	// Everything are all domains, for an arbitrary command.
	Everything Domain = 0xff
)

// Overlaps reports whether d and other have a domain in common.
func (d Domain) Overlaps(other Domain) bool { return d&other != 0 }
