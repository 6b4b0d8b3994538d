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
	// denialQuiet is how long the denials of a connection are collected: whoever lacks
	// all permissions is denied some thirty subjects in any order, and one tells why.
	denialQuiet = time.Second
	// denialRepeat is after how long the same denial is logged again.
	denialRepeat = time.Hour
	// maxDenials is how many are known: a server may report any number of them.
	maxDenials = 1000
)

// denials logs what is denied on a connection, a moment later and on few lines.
type denials struct {
	log   *slog.Logger
	lines telemetry.RateLimitedLog

	mu sync.Mutex
	// noted is when a denial was logged, by its reason: each connection meets it again.
	noted map[string]time.Time
	// forgot is when those that were logged long ago were last forgotten.
	forgot time.Time
	// waiting are those to be logged, by the timer.
	waiting []*kvstore.Denial
	timer   *time.Timer
	// unanswered is set on a connection on which no answer arrives: that explains all.
	unanswered bool
}

func newDenials(log *slog.Logger) *denials { return &denials{log: log, noted: map[string]time.Time{}} }

// connected begins another connection, and has what waits logged: it is of the last one.
func (d *denials) connected() {
	d.flush()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unanswered = false
}

// note has a denial logged soon, unless it was logged lately.
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

// forget forgets the denials that were logged long ago, and reports whether there is room for others. It looks once a
// second at most: all of them come together.
func (d *denials) forget(now time.Time) bool {
	if now.Sub(d.forgot) >= denialQuiet {
		d.forgot = now
		maps.DeleteFunc(d.noted, func(_ string, at time.Time) bool { return now.Sub(at) > denialRepeat })
	}

	return len(d.noted) < maxDenials
}

// reason returns the cause of a denial, or else what is denied.
func reason(d *kvstore.Denial) string {
	if d.Cause != nil {
		return d.Cause.Error()
	}

	return d.Error()
}

// take returns what waits: those with a cause, and those without; explained is that the
// former explain the latter, which are new again where they do not.
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

// flush logs each cause, and of those without one the first.
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
