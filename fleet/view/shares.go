package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// Shares counts the stored messages of reports by node, kind and outcome. The stream limits their number, see
// model.ReportBounds. The zero value is ready.
type Shares struct{ all map[string]*Share }

// Share describes the messages of one node, kind and outcome.
type Share struct {
	Node string
	// Name consists of the node, the kind and the outcome.
	Name string
	// Oldest is the time at which the oldest message was stored.
	Oldest time.Time
	count  int
}

// Add counts a message.
func (s *Shares) Add(m model.StoredReports) {
	if len(m.Reports) == 0 {
		return
	}
	if s.all == nil {
		s.all = map[string]*Share{}
	}
	first := m.Reports[0]
	name := fmt.Sprintf("%s (%s %s)", first.Node, first.Kind, first.Outcome)
	if len(m.Reports) > 1 {
		name = first.Node + " (" + first.Kind + ")" // a batch has one share for all outcomes
	}
	share := s.all[name]
	if share == nil {
		share = &Share{Node: strings.Clone(first.Node), Name: name, Oldest: m.Stored}
		s.all[name] = share
	}
	share.count++
	if m.Stored.Before(share.Oldest) {
		share.Oldest = m.Stored
	}
}

// Full returns the shares that reached the limit, by name. Their older messages may be missing.
func (s *Shares) Full(b model.ReportBounds) []Share {
	var full []Share
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		if share := s.all[name]; b.PerSubject > 0 && share.count >= b.PerSubject {
			full = append(full, *share)
		}
	}

	return full
}

// fullShares are the shares that were full when the past was read: earlier reports are missing until their
// retention time ends. They are sorted by name.
type fullShares struct {
	keep time.Duration
	most int
	all  []Share
}

// maxShares limits the named shares.
const maxShares = 4

// SetShares sets the full shares, each with at most most messages. Their older reports are missing.
func (c *completeness) SetShares(most int, full []Share) {
	full = slices.SortedFunc(slices.Values(full), func(a, b Share) int { return strings.Compare(a.Name, b.Name) })
	c.change(func() bool {
		c.shares.most, c.shares.all = most, full
		return true
	})
}

// missing describes the missing reports of a node, or of all for an empty name, in at most one line.
func (s fullShares) missing(node string, now time.Time) []string {
	var names []string
	more := 0
	for _, one := range s.all {
		switch {
		case node != "" && one.Node != node || now.Sub(one.Oldest) >= s.keep:
		case len(names) == maxShares:
			more++
		default:
			names = append(names, firstLine(one.Name, maxWord)+" before "+one.Oldest.UTC().Format("2006-01-02 15:04 MST"))
		}
	}
	if len(names) == 0 {
		return nil
	}
	text := strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}

	return []string{fmt.Sprintf("The newest %d reports of a node, kind and outcome are stored. Older ones are neither listed nor counted: %s.", s.most, text)}
}
