package agentcmd

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/kvstore/denial"
)

const (
	// denialQuiet is how long the denials of a connection are collected: whoever lacks
	// all permissions is denied some thirty subjects in any order, and one tells why.
	denialQuiet = time.Second
	// denialRepeat is after how long the same denial is logged again.
	denialRepeat = time.Hour
)

// denials logs what is denied on a connection, a moment later and on few lines.
type denials struct {
	log *slog.Logger

	mu sync.Mutex
	// noted is when a denial was logged, by its cause or text: each connection meets it
	// again.
	noted map[string]time.Time
	// waiting are those to be logged.
	waiting []*denial.Denial
	// unanswered is set on a connection on which no answer arrives: that explains all.
	unanswered bool
}

func newDenials(log *slog.Logger) *denials { return &denials{log: log, noted: map[string]time.Time{}} }

// connected begins another connection.
func (d *denials) connected() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unanswered = d.unanswered && len(d.waiting) > 0
}

// note has a denial logged soon, unless it was logged lately.
func (d *denials) note(err error) {
	denied := &denial.Denial{Subject: err.Error()}
	errors.As(err, &denied)
	text := denied.Error()
	if denied.Cause != nil {
		text = denied.Cause.Error()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unanswered = d.unanswered || denied.Cause != nil && denied.IsOfSubscription()
	now := time.Now()
	maps.DeleteFunc(d.noted, func(_ string, at time.Time) bool { return now.Sub(at) > denialRepeat })
	if _, known := d.noted[text]; known {
		return
	}
	d.noted[text] = now
	if d.waiting = append(d.waiting, denied); len(d.waiting) == 1 {
		time.AfterFunc(denialQuiet, d.flush)
	}
}

// flush logs each cause, and of those without one the first.
func (d *denials) flush() {
	d.mu.Lock()
	waiting, level := d.waiting, slog.LevelWarn
	if d.waiting = nil; d.unanswered {
		level = slog.LevelDebug
	}
	d.mu.Unlock()
	slices.SortFunc(waiting, func(a, b *denial.Denial) int { return cmp.Compare(a.Error(), b.Error()) })
	var plain []*denial.Denial
	for _, denied := range waiting {
		if denied.Cause == nil {
			plain = append(plain, denied)
			continue
		}
		d.log.Warn("NATS permission denied", "error", denied)
	}
	for i, denied := range plain {
		attributes := []any{"error", denied}
		if others := len(plain) - 1; i == 0 && others > 0 {
			attributes = append(attributes, "others", others)
		}
		d.log.Log(context.Background(), level, "NATS permission denied, see muster fleet permissions", attributes...)
		level = slog.LevelDebug
	}
}
