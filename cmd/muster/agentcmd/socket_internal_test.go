package agentcmd

import (
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// TestDescribeOfALostConnection leaves out what only says again that it is lost, and keeps the
// rest.
func TestDescribeOfALostConnection(t *testing.T) {
	const other = "another agent has this id"
	all := []string{nats.ErrDisconnected.Error(), other, "what operators write cannot be read: " + nats.ErrDisconnected.Error()}
	for connected, want := range map[bool][]string{false: {other}, true: all} {
		c := &shownConnection{changed: tasks.NewSignal()}
		c.note(connected, "nats://127.0.0.1:4222", nil)
		status := model.AgentStatus{Notices: slices.Clone(all)}
		if c.Describe(&status); !slices.Equal(status.Notices, want) {
			t.Errorf("connected %t: the notices are %q, want %q", connected, status.Notices, want)
		}
	}
}
