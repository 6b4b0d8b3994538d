package watch

import (
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/answer"
)

// maxAnnounced is the number of announcements that the client keeps until they are noted. It drops further ones.
const maxAnnounced = 1024

// announcements are the subscriptions to changes of the families, in the order of parts. They share a channel, so the
// announcements of all families keep their order.
type announcements struct {
	subs    []*nats.Subscription
	dropped []int
	came    chan *nats.Msg
}

// subscribe subscribes to the headers of each change of the families, and notes the changes until unsubscribe is called.
func (l *loop) subscribe() (unsubscribe func(), err error) {
	a := announcements{dropped: make([]int, len(l.parts)), came: make(chan *nats.Msg, maxAnnounced)}
	stop, stopped := make(chan struct{}), make(chan struct{})
	unsubscribe = func() {
		for _, sub := range a.subs {
			_ = sub.Unsubscribe()
		}
		close(stop)
		<-stopped
	}
	for _, p := range l.parts {
		var sub *nats.Subscription
		if sub, err = l.store.Conn().ChanSubscribe(l.bucket.changed(p.family), a.came); err != nil {
			break
		}
		a.subs = append(a.subs, sub)
	}
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case m := <-a.came:
				l.note(m, slices.Index(a.subs, m.Sub))
				a.checkDropped(l.pending)
			}
		}
	}()

	return unsubscribe, err
}

// note notes a change of a family.
func (l *loop) note(m *nats.Msg, family int) {
	key, ok := l.bucket.announced(m.Subject)
	if !ok || strings.ContainsAny(key, "*>") {
		return // a client may publish on a wildcard, which is no key
	}
	due := time.Now()
	if family > 0 {
		due = due.Add(l.spread())
	}
	l.pending.add(family, key, answer.Sequence(m), due)
}

// checkDropped has the families compared whose announcements were dropped, after all others are noted.
func (a announcements) checkDropped(p *pending) {
	if len(a.came) > 0 {
		return
	}
	for i, sub := range a.subs {
		if dropped, err := sub.Dropped(); err == nil && dropped > a.dropped[i] {
			a.dropped[i] = dropped
			p.overflow(i)
		}
	}
}
