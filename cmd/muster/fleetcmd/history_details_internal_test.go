package fleetcmd

import (
	"testing"

	"github.com/musterfleet/muster/fleet/describe"
)

// TestChangeDetails checks that the details do not repeat the columns EVENT and BY.
func TestChangeDetails(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		kind describe.ChangeKind
		want string
	}{
		"resumed":                          {describe.ChangeResumed, ""},
		"paused by ann@desk":               {describe.ChangePaused, ""},
		"paused by ann@desk: disk: a":      {describe.ChangePaused, "disk: a"},
		"paused until noon by ann@desk":    {describe.ChangePaused, "until noon"},
		"paused until 1:00 by ann@desk: d": {describe.ChangePaused, "until 1:00: d"},
		"paused by carl: d":                {describe.ChangePaused, "by carl: d"},
		"paused":                           {describe.ChangePaused, ""},
		"labels rack=a3":                   {describe.ChangeWritten, "labels rack=a3"},
		"not used: it is forged":           {describe.ChangeRefused, "not used: it is forged"},
	} {
		if got := changeDetails(describe.ControlChange{Kind: c.kind, By: "ann@desk", Text: text}); got != c.want {
			t.Errorf("%s: %q, want %q", text, got, c.want)
		}
	}
}
