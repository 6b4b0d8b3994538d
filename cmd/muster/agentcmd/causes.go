package agentcmd

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/musterfleet/muster/kvstore/denial"
)

// causeHandler passes records on. Why nothing can be read or written is logged by each
// part of the agent that tries: the first record has its level, and those that follow
// with the same cause are for debugging.
type causeHandler struct {
	slog.Handler
	logged *loggedCause
}

// loggedCause is the cause that was logged last on a connection.
type loggedCause struct {
	mu   sync.Mutex
	text string
}

// replace notes a cause, none with an empty text, and reports whether it is another one.
func (c *loggedCause) replace(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	other := c.text != text
	c.text = text

	return other
}

// Handle lowers the level of a record whose cause was logged.
func (h causeHandler) Handle(ctx context.Context, r slog.Record) error {
	var cause denial.Unusable
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		return !ok || !errors.As(err, &cause)
	})
	if cause.Err != nil && r.Level > slog.LevelDebug && !h.logged.replace(cause.Error()) {
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
