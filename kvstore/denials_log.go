package kvstore

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model/telemetry"
)

const (
	// denialQuiet is how long denials are collected before they are logged. A user without
	// permissions is denied about thirty subjects in any order, and one denial explains why.
	denialQuiet = time.Second
	// denialRepeat is the time until the same denial is logged again.
	denialRepeat = time.Hour
	// maxDenials limits the remembered denials: a server may report any number.
	maxDenials = 1000
)

// DenialLog logs the denials on a connection after a short delay, in few lines. It is safe for concurrent use. Create it
// with NewDenialLog.
type DenialLog struct {
	log   *slog.Logger
	lines telemetry.RateLimitedLog

	mu sync.Mutex
	// noted holds the time when each denial was logged, by reason. Denials repeat on each connection.
	noted map[string]time.Time
	// waiting are the denials that the timer will log.
	waiting []*Denial
	timer   *time.Timer
	// unanswered is set if no answers arrive on the connection, which explains other denials.
	unanswered bool
}

// NewDenialLog returns a DenialLog of a new connection.
func NewDenialLog(log *slog.Logger) *DenialLog {
	return &DenialLog{log: log, noted: map[string]time.Time{}}
}

// Connected logs the waiting denials, which belong to the previous connection, and starts a new one.
func (d *DenialLog) Connected() {
	d.flush()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unanswered = false
}

// Note schedules a denial for logging, unless it was logged recently.
func (d *DenialLog) Note(denied *Denial) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unanswered = d.unanswered || denied.Cause != nil && denied.IsOfSubscription()
	now, why := time.Now(), reason(denied)
	if at, known := d.noted[why]; known && now.Sub(at) <= denialRepeat {
		return
	}
	if len(d.noted) >= maxDenials {
		maps.DeleteFunc(d.noted, func(_ string, at time.Time) bool { return now.Sub(at) > denialRepeat })
	}
	if len(d.noted) >= maxDenials {
		return
	}
	d.noted[why] = now
	if d.waiting = append(d.waiting, denied); len(d.waiting) == 1 {
		d.timer = time.AfterFunc(denialQuiet, d.flush)
	}
}

func reason(d *Denial) string {
	if d.Cause != nil {
		return d.Cause.Error()
	}

	return d.Error()
}

// take returns the waiting denials with and without a cause. explained reports whether the first explain the
// second; those count as new on the next connection.
func (d *DenialLog) take() (causes, plain []*Denial, explained bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) > 0 {
		d.timer.Stop()
	}
	for _, denied := range d.waiting {
		if denied.Cause != nil {
			causes = append(causes, denied)
			continue
		}
		plain = append(plain, denied)
		if d.unanswered {
			delete(d.noted, reason(denied))
		}
	}
	d.waiting = nil

	return causes, plain, d.unanswered
}

func (d *DenialLog) flush() {
	causes, plain, explained := d.take()
	byText := func(a, b *Denial) int { return cmp.Compare(a.Error(), b.Error()) }
	slices.SortFunc(causes, byText)
	slices.SortFunc(plain, byText)
	for _, denied := range causes {
		d.lines.Log(context.Background(), d.log, slog.LevelWarn, "NATS permission denied", "error", denied)
	}
	level := slog.LevelWarn
	if explained {
		level = slog.LevelDebug
	}
	for i, denied := range plain {
		attributes := []any{"error", denied}
		if others := len(plain) - 1; i == 0 && others > 0 {
			attributes = append(attributes, "others", others)
		}
		const event = "NATS permission denied, see muster fleet permissions"
		if level == slog.LevelWarn {
			d.lines.Log(context.Background(), d.log, level, event, attributes...)
		} else {
			d.log.Log(context.Background(), level, event, attributes...)
		}
		level = slog.LevelDebug
	}
}

// CauseHandler lowers the level of records with an already logged cause, because each part of the agent logs
// why it cannot read or write. The log of the connection has a missing connection, and why the agent exits
// because of it.
type CauseHandler struct {
	slog.Handler
	Logged *LoggedCause
}

// LoggedCause is the last logged cause on a connection.
type LoggedCause struct {
	mu   sync.Mutex
	text string
}

// Replace sets the cause, empty for none, and reports whether it changed.
func (c *LoggedCause) Replace(text string) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed = c.text != text
	c.text = text

	return changed
}

// Handle writes a record, at level debug if its cause is already logged.
func (h CauseHandler) Handle(ctx context.Context, r slog.Record) error {
	var cause Unusable
	away := false
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		away = ok && (errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrDisconnected))
		return !away && (!ok || !errors.As(err, &cause))
	})
	if r.Level > slog.LevelDebug && (away || cause.Err != nil && !h.Logged.Replace(cause.Error())) {
		r.Level = slog.LevelDebug
		if !h.Enabled(ctx, r.Level) {
			return nil
		}
	}

	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns the handler with additional attributes.
func (h CauseHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return CauseHandler{h.Handler.WithAttrs(attrs), h.Logged}
}

// WithGroup returns the handler for a group.
func (h CauseHandler) WithGroup(name string) slog.Handler {
	return CauseHandler{h.Handler.WithGroup(name), h.Logged}
}
