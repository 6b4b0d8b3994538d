package connect

import (
	"cmp"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// maxRound is after how many servers the client waits at the latest before it tries more.
const maxRound = 16

// ownFirst has the client try servers that were configured at least every second time. A server may
// announce any number of others, which the client would all try first, whether they are there or not.
func ownFirst(opts *nats.Options) error {
	s := &servers{own: map[string]bool{}, wasOwn: true}
	for _, text := range opts.Servers {
		s.own[hostOf(text)] = true
	}
	opts.ReconnectToServerCB = s.next
	opts.ConnectedCB, opts.ReconnectedCB = s.then(opts.ConnectedCB), s.then(opts.ReconnectedCB)

	return nil
}

// then returns a handler that notes a connection before it calls another one, if any.
func (s *servers) then(handler nats.ConnHandler) nats.ConnHandler {
	return func(nc *nats.Conn) {
		s.connected(hostOf(nc.ConnectedUrl()))
		if handler != nil {
			handler(nc)
		}
	}
}

// hostOf returns the host and port of a server, as the client completes them.
func hostOf(server string) string {
	server = strings.TrimSpace(server)
	if !strings.Contains(server, "://") {
		server = "nats://" + server
	}
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	if u.Port() != "" {
		return u.Host
	}
	port := "4222"
	switch u.Scheme {
	case "ws":
		port = "80"
	case "wss":
		port = "443"
	}

	return strings.TrimSuffix(u.Host, ":") + ":" + port
}

// servers chooses which one is tried next. Its methods may be called from several goroutines.
type servers struct {
	// own are the hosts of those that were configured.
	own map[string]bool

	mu sync.Mutex
	// lastOwn and lastOther are the hosts of the configured one and of the other that were tried last,
	// wasOwn is which of them was the last one.
	lastOwn, lastOther string
	wasOwn             bool
	// tried is how many were tried since the client last waited, or was connected for long enough.
	tried int
	// since is when the client was connected; zero where it is not.
	since time.Time
}

// connected notes to which server the client is connected.
func (s *servers) connected(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Now()
	s.note(host)
}

// disconnected notes that the client is connected no more. A connection that was lost at once does not count: servers
// that accept and drop would be tried without a wait.
func (s *servers) disconnected() {
	if !s.since.IsZero() && time.Since(s.since) >= reconnectWait {
		s.tried = 0
	}
	s.since = time.Time{}
}

// note notes which one was tried last.
func (s *servers) note(host string) {
	if s.wasOwn = s.own[host]; s.wasOwn {
		s.lastOwn = host
	} else {
		s.lastOther = host
	}
}

// next returns which of the known servers is tried next, and after what wait: a nats.ReconnectToServerHandler.
func (s *servers) next(known []nats.Server, _ nats.ServerInfo) (*nats.Server, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disconnected()
	var own, announced []*nats.Server
	for i := range known {
		if s.own[known[i].URL.Host] {
			own = append(own, &known[i])
		} else {
			announced = append(announced, &known[i])
		}
	}
	chosen := s.choose(own, announced)
	s.note(chosen.URL.Host)
	s.tried++
	if s.tried < min(len(known), maxRound) {
		return chosen, 0
	}
	s.tried = 0

	return chosen, reconnectWait + rand.N(reconnectJitter)
}

// choose returns an announced server after one of the own, the one that failed least often but for the last one, and
// else the next one of the own.
func (s *servers) choose(own, announced []*nats.Server) *nats.Server {
	if len(announced) > 0 && (s.wasOwn || len(own) == 0) {
		others := slices.DeleteFunc(slices.Clone(announced), func(a *nats.Server) bool { return a.URL.Host == s.lastOther })
		if len(others) == 0 {
			return announced[0]
		}
		return slices.MinFunc(others, func(a, b *nats.Server) int { return cmp.Compare(a.Reconnects, b.Reconnects) })
	}
	i := slices.IndexFunc(own, func(o *nats.Server) bool { return o.URL.Host == s.lastOwn })

	return own[(i+1)%len(own)]
}
