package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
)

// overShare counts and shows n skipped reports of a node that exceeded its share.
func (c *Courier) overShare(ctx context.Context, d model.ReportDelivery, n int) {
	name, node := c.sender.Name, d.Reports[0].Node // all are reports of one node
	c.leftOut += n
	c.figures.Change(name, func(f *Counts) { f.OverShare += uint64(n) })
	c.lines.Log(ctx, c.log, slog.LevelWarn, "webhook leaves out reports of a node that reports too much", "webhook", name, "node", node, "reports", n, "first_sequence", d.Sequence)
	c.overNotice.replace(noticeFor, c.Show, c.About()+" share", fmt.Sprintf("webhook %s left out %d reports of nodes that report too much, last of %s at %s", name, c.leftOut, node, time.Now().Local().Format(model.TimeFormat)))
}

// timedWarning is a warning that is cleared some time after its last replacement.
type timedWarning struct {
	mu sync.Mutex
	// generation counts replacements. The timer of an earlier generation may be running and must not clear a later one.
	generation int
	timer      *time.Timer
}

// replace shows a text for some time, in place of the previous text.
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

// clear clears the warning, unless it was replaced.
func (w *timedWarning) clear(generation int, show Notices, about string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if generation == w.generation {
		show.Clear(about)
	}
}
