package view

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Share is the reports of one node, kind and outcome of which the stream keeps so many.
type Share struct {
	Node string
	// Name is that of the node with the kind and outcome, Oldest when the oldest report was stored that
	// there is.
	Name   string
	Oldest time.Time
}

// fullShares are those that were full when the past was read: what was reported before is not known, and is
// missed as long as it would be kept. They are sorted by name.
type fullShares struct {
	keep time.Duration
	most int
	all  []Share
}

// maxShares is how many of them are named.
const maxShares = 4

// SetShares says which shares of at most so many messages are full, of which older reports are not known.
func (c *completeness) SetShares(most int, full []Share) {
	full = slices.SortedFunc(slices.Values(full), func(a, b Share) int { return strings.Compare(a.Name, b.Name) })
	c.change(func() bool {
		c.shares.most, c.shares.all = most, full
		return true
	})
}

// missing returns what is not known of a node, or of all for an empty name: at most one line.
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
