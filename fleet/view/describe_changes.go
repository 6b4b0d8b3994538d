package view

import (
	"cmp"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// ChangeKind is the effect of a revision of a control key.
type ChangeKind string

// The kinds. A revision that no node uses is refused.
const (
	ChangePaused  ChangeKind = "paused"
	ChangeResumed ChangeKind = "resumed"
	ChangeWritten ChangeKind = "written"
	ChangeRemoved ChangeKind = "removed"
	ChangeRefused ChangeKind = "refused"
)

// ControlChange describes a revision of a control key.
type ControlChange struct {
	Key      string     `json:"key"`
	Revision uint64     `json:"revision"`
	Time     time.Time  `json:"at"`
	Kind     ChangeKind `json:"kind"`
	// By is the unverified author, empty if unknown. Text describes the change in one line.
	By   string `json:"by,omitempty"`
	Text string `json:"text"`
	// Signed means that it has a signature, which only nodes verify.
	Signed bool `json:"signed,omitempty"`
}

// IsBy reports whether the author of a change is a user, with or without the host or the source
// after the name.
func IsBy(author, user string) bool {
	rest, is := strings.CutPrefix(author, user)

	return is && (rest == "" || rest[0] == '@' || rest[0] == ' ')
}

// ControlChanges describes revisions of control keys that contain a text in their key, name or description, ignoring
// case. An empty text selects all.
func ControlChanges(all []model.Entry, search string) []ControlChange {
	search = strings.ToLower(search)
	out := []ControlChange{}
	for _, e := range all {
		c := ControlChange{Key: e.Key, Revision: e.Revision, Time: e.Time, By: e.By, Kind: changeKindOf(e)}
		c.Text, c.Signed = DescribeControl(e)
		// Older revisions have no author, except pauses.
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
