package view

import (
	"cmp"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"time"

	"github.com/musterfleet/muster/fleet"
)

// errorLine is an error that begins with the line of a manifest, and the type of the resource on that line. The
// resource may have another name on each node.
var errorLine = regexp.MustCompile(`^(\S+:\d+:\d+): (?:([a-z][a-z0-9_-]*)#)?`)

// placeID identifies a line of a manifest.
type lineID struct {
	manifest, place, of string
	status              fleet.Status
}

// sortedFailures returns the failures by line, the most frequent first.
func (c *counter) sortedFailures(now time.Time) []Failure {
	places := map[lineID][]*failingNodes{}
	out := []Failure{}
	for _, f := range c.failures {
		found := errorLine.FindStringSubmatch(f.Error)
		if found == nil {
			out = append(out, f.at(now))
			continue
		}
		id := lineID{f.Manifest, found[1], found[2], f.Status}
		places[id] = append(places[id], f)
	}
	for _, all := range places {
		out = append(out, together(all, now))
	}
	slices.SortFunc(out, compareFailures)

	return out
}

func compareFailures(a, b Failure) int {
	return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Manifest, b.Manifest), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Error, b.Error))
}

// together merges failures of one line.
func together(all []*failingNodes, now time.Time) Failure {
	if len(all) == 1 {
		return all[0].at(now)
	}
	parts := make([]Failure, len(all))
	sum := failingNodes{}
	for i, f := range all {
		parts[i] = f.at(now)
		sum.claims = append(sum.claims, f.claims...)
	}
	slices.SortFunc(parts, compareFailures)
	sum.Failure = Failure{Manifest: parts[0].Manifest, Status: parts[0].Status, Error: parts[0].Error, parts: parts}
	for _, part := range parts {
		sum.Nodes += part.Nodes
		sum.More += part.More
		sum.First = append(sum.First, part.First...)
	}
	sum.Differ = sum.Nodes - parts[0].Nodes
	slices.Sort(sum.First)
	sum.First = slices.Clip(sum.First[:min(len(sum.First), maxFirst)])

	return sum.at(now)
}

// Texts returns the failures with one text each.
func (f Failure) Texts() iter.Seq[Failure] {
	if f.parts == nil {
		return slices.Values([]Failure{f})
	}

	return slices.Values(f.parts)
}

// Differs reports the number of nodes with another text, empty for none.
func (f Failure) Differs() string {
	if f.Differ == 0 {
		return ""
	}

	return fmt.Sprintf(" (the text differs on %d of them)", f.Differ)
}
