package fleetcli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore/reports"
)

// Shares counts messages of reports by node, kind and outcome: the stream keeps so many of each,
// see reports.Bounds. The zero value is ready.
type Shares struct{ counts map[string]int }

// Add counts a message.
func (s *Shares) Add(m reports.Message) {
	if len(m.Reports) == 0 {
		return
	}
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	s.counts[shareOf(m)]++
}

// shareOf names the share that a message is of. A batch has one for all outcomes.
func shareOf(m reports.Message) string {
	first := m.Reports[0]
	if len(m.Reports) > 1 {
		return first.Node + " (" + first.Kind + ")"
	}

	return fmt.Sprintf("%s (%s %s)", first.Node, first.Kind, first.Outcome)
}

// Missing returns a line about the shares that are full, of which older messages may be missing;
// none where no share is.
func (s *Shares) Missing(b reports.Bounds) []string {
	var full []string
	for _, share := range slices.Sorted(maps.Keys(s.counts)) {
		if b.PerSubject > 0 && s.counts[share] >= b.PerSubject {
			full = append(full, share)
		}
	}
	if len(full) == 0 {
		return nil
	}

	return []string{fmt.Sprintf("the newest %d of each are stored, older ones are not: %s", b.PerSubject, print.Some(full, "and others"))}
}
