package agentcmd

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
)

// causeHandler lowers the level of records whose cause was logged before: each part of the
// agent that finds nothing readable or writable logs why. That there is no connection is
// logged by connectionLog, and where the agent ends by it.
type causeHandler struct {
	slog.Handler
	logged *loggedCause
}

// loggedCause is the cause that was logged last on a connection.
type loggedCause struct {
	mu   sync.Mutex
	text string
}

// replace sets the cause, empty for none, and reports whether it was another one.
func (c *loggedCause) replace(text string) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed = c.text != text
	c.text = text

	return changed
}

// Handle writes a record, at the level of debugging if its cause was logged before.
func (h causeHandler) Handle(ctx context.Context, r slog.Record) error {
	var cause kvstore.Unusable
	away := false
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		away = ok && (errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrDisconnected))
		return !away && (!ok || !errors.As(err, &cause))
	})
	if r.Level > slog.LevelDebug && (away || cause.Err != nil && !h.logged.replace(cause.Error())) {
		r.Level = slog.LevelDebug
		if !h.Enabled(ctx, r.Level) {
			return nil
		}
	}

	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns the handler with further attributes.
func (h causeHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return causeHandler{h.Handler.WithAttrs(attrs), h.logged}
}

// WithGroup returns the handler within a group.
func (h causeHandler) WithGroup(name string) slog.Handler {
	return causeHandler{h.Handler.WithGroup(name), h.logged}
}
