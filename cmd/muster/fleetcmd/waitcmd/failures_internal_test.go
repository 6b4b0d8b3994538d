package waitcmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet"
)

// TestFailures: each node that fails is said once while others are waited for, of many how many.
func TestFailures(t *testing.T) {
	t.Parallel()
	one := fleet.RolloutStatus{Node: "web01", Key: "group.web.motd", Status: fleet.StatusFailed, Reason: "exec#a: no\nsuch " + strings.Repeat("x", 500)}
	rejected := fleet.RolloutStatus{Node: "web02", Key: "group.web.motd", Status: fleet.StatusRejected, Reason: "unknown property"}
	pending := fleet.RolloutStatus{Node: "web03", Key: "group.web.motd", Status: fleet.StatusPending}

	var f failures
	if lines := f.next([]fleet.RolloutStatus{one, rejected}); lines != nil {
		t.Errorf("nothing is waited for: %q", lines)
	}
	lines := f.next([]fleet.RolloutStatus{one, pending})
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "web01 failed: exec#a: no such xxx") || len(lines[0]) > maxReason+30 {
		t.Errorf("one: %q", lines)
	}
	if lines := f.next([]fleet.RolloutStatus{one, rejected, pending}); !slices.Equal(lines, []string{"web02 rejected: unknown property"}) {
		t.Errorf("another: %q", lines)
	}
	if lines := f.next([]fleet.RolloutStatus{one, rejected, pending}); lines != nil {
		t.Errorf("again: %q", lines)
	}
}

// TestManyFailures: after twenty only how many there are is said, each time that they are twice as many.
func TestManyFailures(t *testing.T) {
	t.Parallel()
	var f failures
	var said []string
	for failed := range 1000 {
		said = append(said, f.next(statusesOf(map[fleet.Status]int{fleet.StatusFailed: failed + 1, fleet.StatusPending: 1}))...)
	}
	if len(said) != maxFailures+6 || said[maxFailures] != "21 failed (sim-0000, sim-0001, sim-0002, …), waiting for the others" || !strings.HasPrefix(said[len(said)-1], "672 failed ") {
		t.Errorf("%d lines: %q", len(said), said)
	}
}
