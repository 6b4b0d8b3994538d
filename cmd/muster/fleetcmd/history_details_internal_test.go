package fleetcmd

import (
	"testing"

	"github.com/musterfleet/muster/fleet/view"
)

// TestChangeDetails checks that the details do not repeat the columns EVENT and BY.
func TestChangeDetails(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		kind view.ChangeKind
		want string
	}{
		"resumed":                          {view.ChangeResumed, ""},
		"paused by ann@desk":               {view.ChangePaused, ""},
		"paused by ann@desk: disk: a":      {view.ChangePaused, "disk: a"},
		"paused until noon by ann@desk":    {view.ChangePaused, "until noon"},
		"paused until 1:00 by ann@desk: d": {view.ChangePaused, "until 1:00: d"},
		"paused by carl: d":                {view.ChangePaused, "by carl: d"},
		"paused":                           {view.ChangePaused, ""},
		"labels rack=a3":                   {view.ChangeWritten, "labels rack=a3"},
		"not used: it is forged":           {view.ChangeRefused, "not used: it is forged"},
	} {
		if got := changeDetails(view.ControlChange{Kind: c.kind, By: "ann@desk", Text: text}); got != c.want {
			t.Errorf("%s: %q, want %q", text, got, c.want)
		}
	}
}
