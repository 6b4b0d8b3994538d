package connect

import (
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

// TestServersThatDropAreWaitedFor: servers that accept connections and drop them at once are tried without a wait no more
// often than servers that are not there.
func TestServersThatDropAreWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		known := []nats.Server{{URL: &url.URL{Host: "a:4222"}}, {URL: &url.URL{Host: "b:4222"}}}
		s := &servers{own: map[string]bool{"a:4222": true}, wasOwn: true}
		waits := func(lasts time.Duration) bool {
			next, wait := s.next(known, nats.ServerInfo{})
			s.connected(next.URL.Host)
			<-time.After(lasts)

			return wait > 0
		}
		for i, want := range []bool{false, true, false, true} {
			if got := waits(reconnectWait / 2); got != want {
				t.Errorf("try %d: it waits %v, want %v", i, got, want)
			}
		}
		for i := range 4 {
			if waits(reconnectWait) {
				t.Errorf("try %d after a connection that lasted waits", i)
			}
		}
	})
}
