package web

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/web/access"
)

// How streams go.
const (
	// maxStreams is how many there may be at the same time, ownStreams how many of them of one user.
	maxStreams, ownStreams = 1000, 100
	// pace is the least time between two updates of a stream. They fall on the same moments for
	// all streams, so that those of one page share what is drawn.
	pace = time.Second
	// runPace is that of a run without a summary, each update of which reads the stream of reports
	// of its node, up to 64 MiB.
	runPace = 5 * time.Second
	// settle is how long a stream waits after a change for others that notice it too.
	settle = 50 * time.Millisecond
	// alive is how often something is sent where nothing changes: proxies end what is silent.
	alive = 20 * time.Second
	// patience is how long a browser may take to read an update; one that is slower is dropped,
	// and connects again.
	patience = 10 * time.Second
)

// stream sends the content of a page whenever it changed, until the browser goes away, is too slow,
// or the server shuts down.
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
	out := &events{w, http.NewResponseController(w)}
	out.begin()
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
			if out.update(f) != nil {
				return
			}
			sent = f.id
		}
		if f.final {
			// The error is that of a browser that went away.
			_ = out.write("event: end\ndata: \n\n")
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
				if out.write(": alive\n\n") != nil {
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

// untilUpdate returns how long a stream waits that sent its last update at a time, and noticed a
// change at another, where every is the least time between two updates.
func untilUpdate(last, noticed time.Time, every time.Duration) time.Duration {
	if next := last.Truncate(every).Add(every); next.After(noticed.Add(settle)) {
		return next.Sub(noticed)
	}

	return settle
}

// events writes server-sent events.
type events struct {
	http.ResponseWriter
	control *http.ResponseController
}

// begin sends the headers, and how soon a browser connects again.
func (e *events) begin() {
	e.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	e.Header().Set("Cache-Control", "no-store")
	e.Header().Set("X-Accel-Buffering", "no")
	// The next write shows whether the browser is gone.
	_ = e.write("retry: 2000\n\n")
}

// update sends a fragment. Of what a slow browser does not read yet no copy is made: the fragment is
// that of all who look at its page.
func (e *events) update(f fragment) error {
	return e.send(func(w io.Writer) error {
		_, err := io.WriteString(w, "event: page\nid: "+f.id+"\n")
		for line := range strings.Lines(f.html) {
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, "data: "+strings.TrimRight(line, "\r\n")+"\n")
		}
		if err == nil {
			_, err = io.WriteString(w, "\n")
		}
		return err
	})
}

// write sends a text at once.
func (e *events) write(text string) error {
	return e.send(func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// send sends what is written at once. The error is that of a browser that is gone, or too slow.
func (e *events) send(write func(io.Writer) error) error {
	// A writer without deadlines is one that does not wait, as in a test.
	_ = e.control.SetWriteDeadline(time.Now().Add(patience))
	if err := write(e); err != nil {
		return err
	}
	if err := e.control.Flush(); err != nil {
		return err
	}
	// One that passes would end a stream of HTTP/2 to which nothing is written.
	_ = e.control.SetWriteDeadline(time.Time{})

	return nil
}
