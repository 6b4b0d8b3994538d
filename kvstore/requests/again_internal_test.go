package requests

import (
	"testing"
	"time"
)

// TestNodesAreAskedAgainUntilTheyLeaveAHungServer: a node leaves it after up to 20 s, and needs up to 5 s to connect.
func TestNodesAreAskedAgainUntilTheyLeaveAHungServer(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	r := &repeats{
		waiting: map[string]Request{"to web01": {}}, awaited: map[string]bool{}, begun: begun, toNodes: begun, toGroups: begun,
		subject: func(node string) string { return "to " + node }, reconnected: func() time.Time { return time.Time{} },
	}
	var last time.Duration
	for age := time.Duration(0); age < time.Minute; age += 500 * time.Millisecond {
		if len(r.due(begun.Add(age))) > 0 {
			last = age
		}
	}
	if last <= 25*time.Second || r.count > maxRepeats {
		t.Errorf("asked %d times, the last time after %s", r.count, last)
	}
}
