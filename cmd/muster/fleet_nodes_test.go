package main

import (
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// What a silent node said last is no longer how it is, whatever it runs.
func TestSilentNodeIsShownAsSuch(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const key = "group.all.motd"
	state := model.NodeState{Node: "web01", Started: now.Add(-time.Hour), Manifests: map[string]model.ManifestState{key: {Revision: 7, Outcome: model.OutcomeStable}}}
	for silent, want := range map[bool]string{true: "silent", false: string(model.OutcomeStable)} {
		node := fleet.Node{NodeState: state, Silent: silent, Heard: now.Add(-time.Minute)}
		for entries, all := range map[string][]fleet.Entry{"one manifest": {{Key: key, Revision: 7}}, "none": nil} {
			if entries == "none" && !silent {
				continue
			}
			rows := nodeRows(withStandings([]fleet.Node{node}, all)[0], now)
			if len(rows) != 1 || rows[0][8] != want || (rows[0][2] == "-") != silent {
				t.Errorf("%s, silent %t: %s", entries, silent, strings.Join(rows[0], " | "))
			}
		}
	}
}
