package agentcmd

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
)

// causeHandler lowers the level of records with an already logged cause, because each part of the agent logs
// why it cannot read or write. connectionLog logs a missing connection, and why the agent exits because of
// it.
type causeHandler struct {
	slog.Handler
	logged *loggedCause
}

// loggedCause is the last logged cause on a connection.
type loggedCause struct {
	mu   sync.Mutex
	text string
}

// replace sets the cause, empty for none, and reports whether it changed.
func (c *loggedCause) replace(text string) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed = c.text != text
	c.text = text

	return changed
}

// Handle writes a record, at level debug if its cause is already logged.
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

// WithAttrs returns the handler with additional attributes.
func (h causeHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return causeHandler{h.Handler.WithAttrs(attrs), h.logged}
}

// WithGroup returns the handler for a group.
func (h causeHandler) WithGroup(name string) slog.Handler {
	return causeHandler{h.Handler.WithGroup(name), h.logged}
}
