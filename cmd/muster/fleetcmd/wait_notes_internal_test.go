package fleetcmd

import (
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet"
)

// TestNotes: unreachable nodes are reported at once, and again when only they remain, each once.
func TestNotes(t *testing.T) {
	t.Parallel()
	pending := map[fleet.Status]int{fleet.StatusUpToDate: 1, fleet.StatusUnreachable: 4, fleet.StatusPending: 1}
	only := map[fleet.Status]int{fleet.StatusUpToDate: 1, fleet.StatusFailed: 1, fleet.StatusUnreachable: 1, fleet.StatusRejected: 1}
	const (
		some  = "4 unreachable (sim-0001, sim-0002, sim-0003, …), waiting for all"
		those = "only unreachable nodes remain: 1 unreachable (sim-0002), waiting for at most 5m0s; ctrl-C ends it"
	)
	for name, c := range map[string]struct {
		polls []map[fleet.Status]int
		want  []string
	}{
		"some, then only these": {[]map[fleet.Status]int{pending, pending, only, only}, []string{some, "", those, ""}},
		"only these at once":    {[]map[fleet.Status]int{only, pending, only}, []string{those, "", ""}},
		"only paused ones":      {[]map[fleet.Status]int{{fleet.StatusPaused: 1, fleet.StatusPending: 1}, {fleet.StatusUpToDate: 1, fleet.StatusPaused: 1}}, []string{"1 paused (sim-0000), waiting for all", "only paused nodes remain: 1 paused (sim-0000), waiting for at most 5m0s; ctrl-C ends it"}},
		"none":                  {[]map[fleet.Status]int{{fleet.StatusUpToDate: 1, fleet.StatusPending: 2}}, []string{""}},
		"later":                 {[]map[fleet.Status]int{{fleet.StatusPending: 1}, only}, []string{"", those}},
	} {
		n := notes{timeout: 5 * time.Minute}
		for i, counts := range c.polls {
			if got := n.next(statusesOf(counts)); got != c.want[i] {
				t.Errorf("%s: poll %d: %q, want %q", name, i, got, c.want[i])
			}
		}
	}
	once := notes{}
	if got := once.next(statusesOf(only)); got != "" {
		t.Errorf("who does not wait is told %q", got)
	}
}
