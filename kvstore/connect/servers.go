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

// maxRound is the number of attempts after which the client waits at the latest.
const maxRound = 16

// ownFirst makes the client try a configured server at least every second time. A server may announce
// any number of other servers, and the client would try all of them first.
func ownFirst(opts *nats.Options) error {
	s := &servers{own: map[string]bool{}, wasOwn: true}
	for _, text := range opts.Servers {
		s.own[hostOf(text)] = true
	}
	opts.ReconnectToServerCB = s.next
	opts.ConnectedCB, opts.ReconnectedCB = s.then(opts.ConnectedCB), s.then(opts.ReconnectedCB)

	return nil
}

// then returns a handler that records a connection and then calls handler.
func (s *servers) then(handler nats.ConnHandler) nats.ConnHandler {
	return func(nc *nats.Conn) {
		s.connected(hostOf(nc.ConnectedUrl()))
		if handler != nil {
			handler(nc)
		}
	}
}

// hostOf returns the host and port of a server. It completes them as the client does.
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

// servers chooses the next server to try. Its methods are safe for concurrent use.
type servers struct {
	// own holds the hosts of the configured servers.
	own map[string]bool

	mu sync.Mutex
	// lastOwn and lastOther are the last tried configured host and the last tried announced host.
	// wasOwn reports whether the last attempt used lastOwn.
	lastOwn, lastOther string
	wasOwn             bool
	// tried counts the attempts since the last wait, or since the last connection that lasted.
	tried int
	// since is the start of the connection, or zero while disconnected.
	since time.Time
}

func (s *servers) connected(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Now()
	s.note(host)
}

// disconnected records the loss of the connection. It ignores a connection that was lost at once:
// otherwise the client would retry a server that accepts and drops connections without a wait.
func (s *servers) disconnected() {
	if !s.since.IsZero() && time.Since(s.since) >= reconnectWait {
		s.tried = 0
	}
	s.since = time.Time{}
}

func (s *servers) note(host string) {
	if s.wasOwn = s.own[host]; s.wasOwn {
		s.lastOwn = host
	} else {
		s.lastOther = host
	}
}

// next returns the next server to try and the wait before the attempt. It implements
// nats.ReconnectToServerHandler.
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

// choose alternates between configured and announced servers. It takes the next configured server, and
// the announced server with the fewest failures except the last tried one.
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
