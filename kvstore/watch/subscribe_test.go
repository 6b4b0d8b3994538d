package watch

import (
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/testing/natstest"
)

// TestDroppedAnnouncements tests that a family is compared once after the client dropped its announcements.
func TestDroppedAnnouncements(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	node, server := srv.Connect(t), srv.Connect(t)
	a := announcements{dropped: make([]int, 2), came: make(chan *nats.Msg, 1)}
	for _, family := range []string{"own", "group"} {
		sub, err := node.ChanSubscribe(family, a.came)
		if err != nil {
			t.Fatal(err)
		}
		a.subs = append(a.subs, sub)
	}
	if err := node.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"own", "group", "group"} {
		if err := server.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, nc := range []*nats.Conn{server, node} {
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	p := newPending(2)
	for _, want := range [][]int{nil, {1}, nil} { // the first check has an announcement to note
		a.checkDropped(p)
		if got := p.overflowed(); !slices.Equal(got, want) {
			t.Errorf("families %v to compare, want %v", got, want)
		}
		if len(a.came) > 0 {
			<-a.came
		}
	}
}
