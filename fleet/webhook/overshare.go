package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
)

// overShare says that so many reports of a message are not sent since their node reports too much.
func (c *Courier) overShare(ctx context.Context, d model.ReportDelivery, n int) {
	name, node := c.sender.Name, d.Reports[0].Node // all are of one
	c.leftOut += n
	c.figures.Change(name, func(f *Counts) { f.OverShare += uint64(n) })
	c.lines.Log(ctx, c.log, slog.LevelWarn, "webhook leaves out reports of a node that reports too much", "webhook", name, "node", node, "reports", n, "first_sequence", d.Sequence)
	c.overNotice.replace(noticeFor, c.Show, c.About()+" share", fmt.Sprintf("webhook %s left out %d reports of nodes that report too much, last of %s at %s", name, c.leftOut, node, time.Now().Local().Format(model.TimeFormat)))
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
func (w *timedWarning) replace(during time.Duration, show Notices, about, text string) {
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
func (w *timedWarning) clear(generation int, show Notices, about string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if generation == w.generation {
		show.Clear(about)
	}
}
