package web

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/fleet/web/api"
)

// The limits of streams.
const (
	// maxStreams limits all streams, ownStreams those of one user.
	maxStreams, ownStreams = 1000, 100
	// pace is the minimum time between updates. All streams update at the same moments, so that they share drawn
	// content.
	pace = time.Second
	// runPace is the pace for a run without a summary, because each update reads up to 64 MiB of reports of its node.
	runPace = 5 * time.Second
	// settle is the wait after a change, so that streams update together.
	settle = 50 * time.Millisecond
	// alive is the interval of keep-alive messages, because proxies close silent connections.
	alive = 20 * time.Second
	// patience is the time after which a slow browser is dropped. It connects again.
	patience = 10 * time.Second
)

// stream sends the content of a page after each change, until the browser goes away or is too slow, or the server shuts
// down.
func (s *site) stream(w http.ResponseWriter, r *http.Request, v screen) {
	leave, err := s.streams.Take(access.UserOf(r.Context()))
	if err != nil {
		w.Header().Set("Retry-After", "30")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	changes := s.Model.Changes
	if v.changes != nil {
		changes = v.changes
	}
	changed, cancel := changes()
	defer cancel()
	beginEvents(w)
	sent := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get(have))
	quiet := time.NewTicker(alive)
	defer quiet.Stop()
	noticed := s.Now()
	for {
		f, err := s.fragment(r.Context(), r, v, noticed)
		if err != nil {
			return
		}
		if f.id != sent {
			if sendFragment(w, f) != nil {
				return
			}
			sent = f.id
		}
		if f.final {
			// ignore that the browser went away
			_ = api.SendNow(w, patience, "event: end\ndata: \n\n")
			return
		}
		last := s.Now()
		for waiting := true; waiting; {
			select {
			case <-r.Context().Done():
				return
			case <-s.Done:
				return
			case <-quiet.C:
				if api.SendNow(w, patience, ": alive\n\n") != nil {
					return
				}
			case <-changed:
				waiting = false
			}
		}
		noticed = s.Now()
		select {
		case <-r.Context().Done():
			return
		case <-s.Done:
			return
		case <-time.After(untilUpdate(last, noticed, cmp.Or(v.pace, pace))):
		}
	}
}

// untilUpdate returns how long to wait for the next update, from the times of the last update and of the change, and
// the minimum time between updates.
func untilUpdate(last, noticed time.Time, every time.Duration) time.Duration {
	if next := last.Truncate(every).Add(every); next.After(noticed.Add(settle)) {
		return next.Sub(noticed)
	}

	return settle
}

// beginEvents sends the headers of server-sent events and the time to reconnect.
func beginEvents(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	// the next write detects a closed connection
	_ = api.SendNow(w, patience, "retry: 2000\n\n")
}

// sendFragment sends a fragment. It makes no copy for slow browsers, because all browsers of a page share the fragment.
func sendFragment(w http.ResponseWriter, f fragment) error {
	texts := []string{"event: page\nid: " + f.id + "\n"}
	for line := range strings.Lines(f.html) {
		texts = append(texts, "data: ", strings.TrimRight(line, "\r\n"), "\n")
	}

	return api.SendNow(w, patience, append(texts, "\n")...)
}
