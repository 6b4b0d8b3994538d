package view

import (
	"strings"
	"time"
	"unicode"

	"github.com/musterfleet/muster/fleet"
)

// currentFailures is the number of nodes where a resource fails now, and since when, from the states of nodes.
type currentFailures struct {
	nodes int
	since time.Time
	// atLeast means that it may also fail on other nodes, after another resource of the manifest.
	atLeast bool
	// most is the number of nodes with the error of since.
	most int
}

// failingNow returns the resources that fail now. The state of a node names only the first error of a run, so
// a resource that fails after another one is unknown.
func failingNow(all []Failure, known map[topID]*countedResource) map[topID]currentFailures {
	out := map[topID]currentFailures{}
	// behind is the number of nodes with further errors, by manifest and by resource.
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

// resourceOf returns the resource of an error "<type>#<name>: <error>", possibly after a position. Each part
// may contain a colon, so it searches for known resources.
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
