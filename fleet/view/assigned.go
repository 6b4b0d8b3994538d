package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// ChangeAssigned is a revision with an assignment.
const ChangeAssigned ChangeKind = "assigned"

// AssignmentChange is a revision of an assignment, or its removal.
type AssignmentChange struct {
	Key      string     `json:"key"`
	Revision uint64     `json:"revision"`
	Time     time.Time  `json:"at"`
	Kind     ChangeKind `json:"kind"`
	// By is the unverified author, empty if unknown.
	By string `json:"by,omitempty"`
	// Problem is the reason why no node uses it, empty for none.
	Problem string `json:"problem,omitempty"`
}

// AssignmentChanges describes revisions of assignments that contain a text in their key, name, kind or problem,
// ignoring case. An empty text selects all.
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

// MergeChanges returns changes of assignments and control keys as one list, oldest first. The text of an assignment
// is the reason why no node uses it.
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
