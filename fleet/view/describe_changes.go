package view

import (
	"cmp"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// ChangeKind is what a revision of a control key did.
type ChangeKind string

// The kinds. A revision that no node uses is refused.
const (
	ChangePaused  ChangeKind = "paused"
	ChangeResumed ChangeKind = "resumed"
	ChangeWritten ChangeKind = "written"
	ChangeRemoved ChangeKind = "removed"
	ChangeRefused ChangeKind = "refused"
)

// ControlChange is a revision of what operators wrote about a node or a group, in words.
type ControlChange struct {
	Key      string     `json:"key"`
	Revision uint64     `json:"revision"`
	Time     time.Time  `json:"at"`
	Kind     ChangeKind `json:"kind"`
	// By is who wrote it, as they said, empty where they did not; Text is what, in a line.
	By   string `json:"by,omitempty"`
	Text string `json:"text"`
	// Signed is that it has a signature, which only nodes verify.
	Signed bool `json:"signed,omitempty"`
}

// IsBy reports whether the author of a change is a user, with or without the host or the source
// after the name.
func IsBy(author, user string) bool {
	rest, is := strings.CutPrefix(author, user)

	return is && (rest == "" || rest[0] == '@' || rest[0] == ' ')
}

// Changes describes revisions of control keys: those that have a part of a key, a name or a text, whatever the
// case of its letters; all for an empty one.
func ControlChanges(all []model.Entry, search string) []ControlChange {
	search = strings.ToLower(search)
	out := []ControlChange{}
	for _, e := range all {
		c := ControlChange{Key: e.Key, Revision: e.Revision, Time: e.Time, By: e.By, Kind: changeKindOf(e)}
		c.Text, c.Signed = DescribeControl(e)
		// What was written before names were: a pause has one of its own.
		if p, err := decodePause(e.Value); err == nil {
			c.By = cmp.Or(c.By, p.By)
		}
		if strings.Contains(strings.ToLower(strings.Join([]string{c.Key, c.By, c.Text}, " ")), search) {
			out = append(out, c)
		}
	}

	return out
}

func changeKindOf(e model.Entry) ChangeKind {
	_, name, _ := model.SplitKey(e.Key)
	switch {
	case e.Refused != "":
		return ChangeRefused
	case e.Deleted && name == model.ControlPause:
		return ChangeResumed
	case e.Deleted:
		return ChangeRemoved
	case name == model.ControlPause:
		return ChangePaused
	default:
		return ChangeWritten
	}
}
