package fleetcmd

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
)

// Shares counts messages of reports by node, kind and outcome: the stream keeps so many of each,
// see reports.Bounds. The zero value is ready.
type Shares struct{ all map[string]*Share }

// Share is the messages of one node, kind and outcome.
type Share struct {
	Node string
	// Name has the kind and the outcome, too.
	Name string
	// Oldest is when the oldest of them was stored.
	Oldest time.Time
	count  int
}

// Add counts a message.
func (s *Shares) Add(m kvstore.ReportMessage) {
	if len(m.Reports) == 0 {
		return
	}
	if s.all == nil {
		s.all = map[string]*Share{}
	}
	name := shareOf(m)
	share := s.all[name]
	if share == nil {
		share = &Share{Node: strings.Clone(m.Reports[0].Node), Name: name, Oldest: m.Stored}
		s.all[name] = share
	}
	share.count++
	if m.Stored.Before(share.Oldest) {
		share.Oldest = m.Stored
	}
}

// shareOf names the share that a message is of. A batch has one for all outcomes.
func shareOf(m kvstore.ReportMessage) string {
	first := m.Reports[0]
	if len(m.Reports) > 1 {
		return first.Node + " (" + first.Kind + ")"
	}

	return fmt.Sprintf("%s (%s %s)", first.Node, first.Kind, first.Outcome)
}

// Full returns the shares of which older messages may be missing, by name.
func (s *Shares) Full(b kvstore.ReportBounds) []Share {
	var full []Share
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		if share := s.all[name]; b.PerSubject > 0 && share.count >= b.PerSubject {
			full = append(full, *share)
		}
	}

	return full
}

// Missing returns a line about the shares that are full, of which older messages may be missing;
// none where no share is.
func (s *Shares) Missing(b kvstore.ReportBounds) []string {
	var full []string
	for _, share := range s.Full(b) {
		full = append(full, share.Name)
	}
	if len(full) == 0 {
		return nil
	}

	return []string{fmt.Sprintf("the newest %d of each are stored, older ones are not: %s", b.PerSubject, print.Some(full, "and others"))}
}
