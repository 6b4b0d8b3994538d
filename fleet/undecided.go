package fleet

import (
	"fmt"
	"iter"
	"slices"

	"github.com/musterfleet/muster/fleet/targets"

	"github.com/musterfleet/muster/model"
)

// Undecided is a node that may be in a target.
type Undecided struct{ Node, Reason string }

// maxReasons is the maximum number of reasons that Reasons returns separately.
const maxReasons = 10

// Reason is the reason why it is unknown whether some nodes match.
type Reason struct {
	Reason string
	Nodes  []string
}

// Reasons returns the undecided nodes by reason.
func Reasons(all []Undecided) (out []Reason) {
	for _, u := range all {
		reason := u.Reason
		at := slices.IndexFunc(out, func(r Reason) bool { return r.Reason == reason })
		if at < 0 && len(out) >= maxReasons {
			reason = "other reasons"
			at = slices.IndexFunc(out, func(r Reason) bool { return r.Reason == reason })
		}
		if at < 0 {
			at, out = len(out), append(out, Reason{Reason: reason})
		}
		out[at].Nodes = append(out[at].Nodes, u.Node)
	}

	return out
}

// Text returns the reason with the number of its nodes among all nodes, and with their names unless they are empty.
func (r Reason) Text(all int, names string) string {
	if names != "" {
		names = ": " + names
	}
	switch count := fmt.Sprintf("%d of %d nodes", len(r.Nodes), all); r.Reason {
	case whyNoFacts:
		return count + " sent no facts" + names
	case whyNoInventory:
		return count + " sent no inventory" + names
	default:
		return "cannot tell whether " + count + " match" + names + ": " + r.Reason
	}
}

// incomplete returns the reasons why nodes are undecided.
func (s Selection) incomplete() (out []string) {
	for _, r := range Reasons(s.Undecided) {
		out = append(out, r.Text(s.Known, ""))
	}

	return out
}

// Warnings returns the warnings that need neither facts nor inventories: probable mistakes in the expression, and names
// that no node has. statuses returns the statuses of a node.
func Warnings(e *targets.Expression, nodes iter.Seq[*model.Node], statuses func(*model.Node) []RolloutStatus) []string {
	return append(slices.Clone(e.Warnings()), UnknownNames(targets.NewFinder(e.Mentions()), nodes, statuses)...)
}

// UnknownNames adds nodes to a finder and returns its warnings. It calls statuses only for the names of manifests.
func UnknownNames(unknown *targets.Finder, nodes iter.Seq[*model.Node], statuses func(*model.Node) []RolloutStatus) []string {
	count := 0
	for n := range nodes {
		count++
		unknown.AddNode(n)
		if unknown.Needs(targets.SpaceManifest) {
			addManifests(unknown, statuses(n))
		}
	}

	return unknown.Warnings(count)
}

// addManifests adds the names of the manifests of a node.
func addManifests(to *targets.Finder, statuses []RolloutStatus) {
	if !to.Needs(targets.SpaceManifest) {
		return
	}
	for _, s := range statuses {
		if _, name, ok := model.SplitKey(s.Key); ok {
			to.Add(targets.SpaceManifest, name)
		}
	}
}
