package agentcmd

import (
	"errors"
	"slices"
	"testing"
	"time"

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

func TestAfterChange(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	var c model.Connected
	refused := errors.New("refused")
	steps := []struct {
		connected bool
		server    string
		err       error
		want      model.Connected
	}{
		{false, "a", refused, model.Connected{Server: "a", Error: "refused", ErrorAt: at(0)}},
		{true, "a", nil, model.Connected{Connected: true, Server: "a", Since: at(1), Error: "refused", ErrorAt: at(0)}},
		{true, "a", refused, model.Connected{Connected: true, Server: "a", Since: at(1), Error: "refused", ErrorAt: at(2)}},
		{true, "b", nil, model.Connected{Connected: true, Server: "b", Since: at(3), Error: "refused", ErrorAt: at(2)}},
		{false, "b", nil, model.Connected{Server: "b", Since: at(4), Error: "refused", ErrorAt: at(2)}},
		{false, "b", nil, model.Connected{Server: "b", Since: at(4), Error: "refused", ErrorAt: at(2)}},
	}
	for i, s := range steps {
		if c = afterChange(c, s.connected, s.server, s.err, at(i)); c != s.want {
			t.Errorf("step %d: %+v, want %+v", i, c, s.want)
		}
	}
}
