package webhook

import (
	"fmt"
	"sync"
	"time"
)

// lateness records whether a courier is sending a report. Its lock also covers the display.
type lateness struct {
	mu   sync.Mutex
	held bool
	// rest clears the warning after a time without reports.
	rest *time.Timer
}

// begin shows the age of the report that is sent next.
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

// end records the end of a report. The warning stays until the next report, which this or another server may send.
func (c *Courier) end() {
	c.lateness.mu.Lock()
	defer c.lateness.mu.Unlock()
	c.lateness.held, c.lateness.rest = false, time.AfterFunc(c.idle, c.inTime)
}

// leave records that the courier stops reading.
func (c *Courier) leave() {
	c.lateness.mu.Lock()
	c.lateness.held = false
	if c.lateness.rest != nil {
		c.lateness.rest.Stop()
	}
	c.lateness.mu.Unlock()
	c.inTime()
}

// inTime clears the warning, unless a report is being sent.
func (c *Courier) inTime() {
	c.lateness.mu.Lock()
	defer c.lateness.mu.Unlock()
	if !c.lateness.held {
		c.figures.Change(c.sender.Name, func(f *Counts) { f.Sending = time.Time{} })
		c.Show.Clear(c.aboutLate())
	}
}

func (c *Courier) aboutLate() string { return c.About() + " late" }
