package fleet_test

import (
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// TestWhyNotNamesAManifestOnce: an error with a place names it already.
func TestWhyNotNamesAManifestOnce(t *testing.T) {
	t.Parallel()
	n := model.Node{NodeState: model.NodeState{Node: "web01"}}
	for reason, want := range map[string]string{
		"group.web.motd:4:11: file#/x: no space": "group.web.motd:4:11: file#/x: no space, and 1 more manifests",
		"no space":                               "group.web.motd: no space, and 1 more manifests",
	} {
		got := fleet.WhyNot(n, []fleet.RolloutStatus{{Node: "web01", Key: "group.web.motd", Status: fleet.StatusFailed, Reason: reason}, {Node: "web01", Key: "group.web.other", Status: fleet.StatusFailed, Reason: "x"}})
		if got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
}
