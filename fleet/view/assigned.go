package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// ChangeAssigned is a revision that assigns something.
const ChangeAssigned ChangeKind = "assigned"

// AssignmentChange is a revision of an assignment, or its removal.
type AssignmentChange struct {
	Key      string     `json:"key"`
	Revision uint64     `json:"revision"`
	Time     time.Time  `json:"at"`
	Kind     ChangeKind `json:"kind"`
	// By is who wrote it, as they said; empty where they did not.
	By string `json:"by,omitempty"`
	// Problem is why no node uses it, empty for nothing.
	Problem string `json:"problem,omitempty"`
}

// Assignments describes revisions of assignments: those that have a part of a key, a name, a kind or a problem,
// whatever the case of its letters; all for an empty one.
func AssignmentChanges(all []model.Entry, search string) []AssignmentChange {
	search = strings.ToLower(search)
	out := []AssignmentChange{}
	for _, e := range all {
		c := AssignmentChange{Key: e.Key, Revision: e.Revision, Time: e.Time, By: e.By, Kind: ChangeAssigned, Problem: e.Refused}
		switch {
		case e.Refused != "":
			c.Kind = ChangeRefused
		case e.Deleted:
			c.Kind = ChangeRemoved
		case e.Invalid:
			c.Kind, c.Problem = ChangeRefused, "its key is not node.<node>.<name> or group.<group>.<name>"
		}
		if strings.Contains(strings.ToLower(strings.Join([]string{c.Key, c.By, string(c.Kind), c.Problem}, " ")), search) {
			out = append(out, c)
		}
	}

	return out
}

// Merge returns changes of assignments and of what operators wrote about nodes and groups as one list, the
// oldest first. The text of an assignment is why no node uses it.
func MergeChanges(assigned []AssignmentChange, written []ControlChange) []ControlChange {
	out := slices.Clone(written)
	for _, a := range assigned {
		out = append(out, ControlChange{Key: a.Key, Revision: a.Revision, Time: a.Time, Kind: a.Kind, By: a.By, Text: a.Problem})
	}
	slices.SortFunc(out, func(a, b ControlChange) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Key, b.Key))
	})

	return out
}
