package fleetcmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/view"
)

// TestMoreThanAreRead checks that the remark about a larger limit appears only if a larger limit shows more.
func TestMoreThanAreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command historyCommand
		most    int
		says    bool
	}{
		"a limit":         {historyCommand{limit: 100}, 100, true},
		"no limit":        {historyCommand{}, maxChanges, false},
		"a limit of many": {historyCommand{limit: maxChanges + 1}, maxChanges, false},
		"of groups":       {historyCommand{limit: 100, groups: []string{"web"}}, maxChanges, false},
	} {
		most, isLimit := c.command.mostAssigned()
		var out, remarks bytes.Buffer
		c.command.Env = &cli.Env{Print: print.Printer{Out: &out, Err: &remarks}}
		doc := ofFleetDocument{Changes: []view.ControlChange{{Key: "group.web.motd"}}, More: true, isLimited: isLimit}
		if !isLimit {
			doc.Incomplete = []string{onlyLast("assignments", most)}
		}
		if err := c.command.showChanges(doc); err != nil || most != c.most || isLimit != c.says {
			t.Errorf("%s: %d, %t, %v", name, most, isLimit, err)
		}
		if says := strings.Contains(remarks.String(), "--limit 0 shows all"); says != c.says || says == strings.Contains(remarks.String(), "only the last 50000 changes") {
			t.Errorf("%s: %s", name, &remarks)
		}
	}
}

// TestIsBy tests that a user matches with and without a host, and that no other name matches.
func TestIsBy(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]bool{"anna": true, "anna@desk": true, "anna (dashboard)": true, "anna (oidc 42)": true, "annabel@desk": false, "bob@anna": false, "": false} {
		if got := view.IsBy(by, "anna"); got != want {
			t.Errorf("%q: %t", by, got)
		}
	}
}
