package view

import (
	"strings"
	"time"
	"unicode"

	"github.com/musterfleet/muster/fleet"
)

// failures is on how many nodes a resource fails now, and since when, by the states of nodes.
type currentFailures struct {
	nodes int
	since time.Time
	// atLeast is whether it may fail on other nodes, too, behind another resource of the manifest.
	atLeast bool
	// most is how many nodes have the error of which since is.
	most int
}

// failingNow returns which of some resources fail now. The state of a node names the first error of a run: of a
// resource that fails behind another one is only known that there may be one.
func failingNow(all []Failure, known map[topID]*countedResource) map[topID]currentFailures {
	out := map[topID]currentFailures{}
	// behind is how many nodes have further errors, by manifest, and of each resource, behind that one.
	behind, behindIt := map[string]int{}, map[topID]int{}
	for _, failure := range all {
		if failure.Status != fleet.StatusFailed {
			continue
		}
		behind[failure.Manifest] += failure.More
		for f := range failure.Texts() {
			id, found := resourceOf(f, known)
			if !found {
				continue
			}
			behindIt[id] += f.More
			now := out[id]
			if now.nodes += f.Nodes; !f.Since.IsZero() && f.Nodes > now.most {
				now.since, now.most = f.Since, f.Nodes
			}
			out[id] = now
		}
	}
	for id, now := range out {
		now.atLeast = behind[id.manifest] > behindIt[id]
		out[id] = now
	}

	return out
}

// resourceOf returns the resource that an error is of, which is "<type>#<name>: <error>", maybe after the place
// where it is declared; any part of that may have a colon, so those that are known are looked for.
func resourceOf(f Failure, known map[topID]*countedResource) (topID, bool) {
	for at, c := range f.Error {
		if c != '#' {
			continue
		}
		from := 1 + strings.LastIndexFunc(f.Error[:at], func(r rune) bool { return unicode.IsSpace(r) })
		for to := at; ; to++ {
			colon := strings.Index(f.Error[to:], ": ")
			if colon < 0 {
				break
			}
			to += colon
			id := topID{f.Manifest, cutText(f.Error[from:to], maxWord)}
			if known[id] != nil {
				return id, true
			}
		}
	}

	return topID{}, false
}
