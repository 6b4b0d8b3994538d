package agentcmd

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/kvstore"
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

// denials logs the denials on a connection after a short delay, in few lines.
type denials struct {
	log   *slog.Logger
	lines telemetry.RateLimitedLog

	mu sync.Mutex
	// noted holds the time when each denial was logged, by reason. Denials repeat on each connection.
	noted map[string]time.Time
	// forgot is the time of the last cleanup of noted.
	forgot time.Time
	// waiting are the denials that the timer will log.
	waiting []*kvstore.Denial
	timer   *time.Timer
	// unanswered is set if no answers arrive on the connection, which explains other denials.
	unanswered bool
}

func newDenials(log *slog.Logger) *denials { return &denials{log: log, noted: map[string]time.Time{}} }

// connected logs the waiting denials, which belong to the previous connection, and starts a new one.
func (d *denials) connected() {
	d.flush()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unanswered = false
}

// note schedules a denial for logging, unless it was logged recently.
func (d *denials) note(denied *kvstore.Denial) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unanswered = d.unanswered || denied.Cause != nil && denied.IsOfSubscription()
	now, why := time.Now(), reason(denied)
	if at, known := d.noted[why]; known && now.Sub(at) <= denialRepeat {
		return
	}
	if len(d.noted) >= maxDenials && !d.forget(now) {
		return
	}
	d.noted[why] = now
	if d.waiting = append(d.waiting, denied); len(d.waiting) == 1 {
		d.timer = time.AfterFunc(denialQuiet, d.flush)
	}
}

// forget removes old denials, and reports whether there is space for more. It runs at most once per second,
// because denials arrive together.
func (d *denials) forget(now time.Time) bool {
	if now.Sub(d.forgot) >= denialQuiet {
		d.forgot = now
		maps.DeleteFunc(d.noted, func(_ string, at time.Time) bool { return now.Sub(at) > denialRepeat })
	}

	return len(d.noted) < maxDenials
}

// reason returns the cause of a denial, or the denial itself.
func reason(d *kvstore.Denial) string {
	if d.Cause != nil {
		return d.Cause.Error()
	}

	return d.Error()
}

// take returns the waiting denials with and without a cause. explained reports whether the first explain the
// second; those count as new on the next connection.
func (d *denials) take() (causes, plain []*kvstore.Denial, explained bool) {
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

// flush logs each cause, and the first denial without a cause.
func (d *denials) flush() {
	causes, plain, explained := d.take()
	byText := func(a, b *kvstore.Denial) int { return cmp.Compare(a.Error(), b.Error()) }
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
