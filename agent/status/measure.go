package status

import (
	"context"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/model"
)

// sent is a stored state with the readings of the monotonic clock before and after.
type sent struct {
	at            time.Time
	before, after time.Duration
	// asked means that measureNow was done for this connection.
	asked bool
}

// measureNow measures the server's time by the state that was just stored, once per connection. Later
// measurements use the state that is read before the next store. A failure is ignored.
func (h *Heartbeat) measureNow(ctx context.Context) {
	if h.sent.asked {
		return
	}
	h.sent.asked = true
	found, err := h.Store.State(ctx, h.Node.config().Node)
	if err == nil && h.measure(ctx, found) {
		// Operators see the offset now, and not at the next heartbeat.
		h.stored.state = ""
		h.Node.Changed.Notify()
	}
}

// measure measures the server's time by the last stored state if found is that state: the server stored it
// between sending and acknowledgement. It reports whether the offset changed.
func (h *Heartbeat) measure(ctx context.Context, found model.Node) bool {
	if found.Heard.IsZero() || !found.Started.Equal(h.Node.started) || !found.At.Equal(h.sent.at) {
		return false
	}
	if !h.Clock.Measured(found.Heard, h.sent.before, h.sent.after) {
		return false
	}
	level, event, offset := slog.LevelInfo, "clock agrees with that of the NATS server", h.Clock.Offset()
	if offset.Apparent() {
		level, event = slog.LevelWarn, "clock differs from that of the NATS server"
	}
	h.moves.Log(ctx, h.Log, level, event, "offset", offset.Offset, "within", offset.Within)
	h.ClockMoved()

	return true
}
