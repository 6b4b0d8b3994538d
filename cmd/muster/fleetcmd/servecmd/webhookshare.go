package servecmd

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet/webhook"
	"github.com/musterfleet/muster/kvstore"
)

// overShare says that so many reports of a message are not sent since their node reports too much.
func (c *courier) overShare(ctx context.Context, d kvstore.ReportDelivery, n int) {
	name, node := c.sender.Name, d.Reports[0].Node // all are of one
	c.leftOut += n
	c.figures.Change(name, func(f *webhook.Counts) { f.OverShare += uint64(n) })
	c.lines.Log(ctx, c.log, slog.LevelWarn, "webhook leaves out reports of a node that reports too much", "webhook", name, "node", node, "reports", n, "first_sequence", d.Sequence)
	c.overNotice.replace(noticeFor, c.show, c.about()+" share", fmt.Sprintf("webhook %s left out %d reports of nodes that report too much, last of %s at %s", name, c.leftOut, node, clock(time.Now())))
}

// timedWarning is a warning that is cleared a while after it was last replaced.
type timedWarning struct {
	mu sync.Mutex
	// generation is how often it was replaced: the timer of an earlier one, which may be running already, leaves
	// a later one alone.
	generation int
	timer      *time.Timer
}

// replace shows a text for a while, in place of the one before.
func (w *timedWarning) replace(during time.Duration, show warnings, about, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.generation++
	show.Warning(about, text)
	generation := w.generation
	w.timer = time.AfterFunc(during, func() { w.clear(generation, show, about) })
}

// clear clears what was shown, unless it was replaced since.
func (w *timedWarning) clear(generation int, show warnings, about string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if generation == w.generation {
		show.Clear(about)
	}
}
