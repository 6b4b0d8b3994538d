package status

import (
	"context"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/model"
)

// sent is a state that was stored, and between which times of the monotonic clock.
type sent struct {
	at            time.Time
	before, after time.Duration
	// asked is that measureNow did its part for this connection.
	asked bool
}

// measureNow measures the server's time by the state that was stored just now, once for
// a connection: later it is measured by what is read before the next state is stored.
// That it cannot is no failure.
func (h *Heartbeat) measureNow(ctx context.Context) {
	if h.sent.asked {
		return
	}
	h.sent.asked = true
	found, err := h.Store.State(ctx, h.Node.config().Node)
	if err == nil && h.measure(ctx, found) {
		// Operators see it now, not with the next heartbeat.
		h.stored.state = ""
		h.Node.Changed.Notify()
	}
}

// measure measures the server's time by the state that was stored last, where found is
// that one: the server stored it between its sending and its acknowledgement. It reports
// whether the offset of the clock is another one.
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
