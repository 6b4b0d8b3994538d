package webhook

import (
	"fmt"
	"sync"
	"time"
)

// lateness is whether a courier has a report, and when it last had one. Its lock is held while that is shown.
type lateness struct {
	mu   sync.Mutex
	held bool
	// rest ends what is shown when nothing comes for a while.
	rest *time.Timer
}

// begin shows how old a report is that is sent next.
func (c *Courier) begin(stored time.Time) {
	c.lateness.mu.Lock()
	defer c.lateness.mu.Unlock()
	c.lateness.held = true
	if c.lateness.rest != nil {
		c.lateness.rest.Stop()
	}
	c.figures.Change(c.sender.Name, func(f *Counts) { f.Sending = stored })
	if age := time.Since(stored); age > c.late {
		c.Show.Warning(c.aboutLate(), fmt.Sprintf("webhook %s is behind: what it sends now was stored %d min ago", c.sender.Name, int(age.Minutes())))
	} else {
		c.Show.Clear(c.aboutLate())
	}
}

// end says that the report is done. What was shown of it stays until the next one, which may be there already;
// another serve may have it, too.
func (c *Courier) end() {
	c.lateness.mu.Lock()
	defer c.lateness.mu.Unlock()
	c.lateness.held, c.lateness.rest = false, time.AfterFunc(c.idle, c.inTime)
}

// leave says that it reads no more: another one may.
func (c *Courier) leave() {
	c.lateness.mu.Lock()
	c.lateness.held = false
	if c.lateness.rest != nil {
		c.lateness.rest.Stop()
	}
	c.lateness.mu.Unlock()
	c.inTime()
}

// inTime shows that nothing is late, unless there is a report.
func (c *Courier) inTime() {
	c.lateness.mu.Lock()
	defer c.lateness.mu.Unlock()
	if !c.lateness.held {
		c.figures.Change(c.sender.Name, func(f *Counts) { f.Sending = time.Time{} })
		c.Show.Clear(c.aboutLate())
	}
}

func (c *Courier) aboutLate() string { return c.About() + " late" }
