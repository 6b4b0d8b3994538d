package webhook

import (
	"maps"
	"sync"
	"time"
)

// Figures count the reports of webhooks, by name. The zero value is ready. Its methods may be called from several
// goroutines.
type Figures struct {
	mu  sync.Mutex
	all map[string]Counts
}

// Counts are the figures of one webhook since serve started.
type Counts struct {
	// Sent counts accepted reports, Refused counts rejected ones.
	Sent, Refused uint64
	// OverShare counts reports that were skipped because their node reports too much.
	OverShare uint64
	// Failing is set if the last attempt failed.
	Failing bool
	// Sending is the time at which the current report was stored, zero if there is none.
	Sending time.Time
}

// Change changes the figures of a webhook.
func (f *Figures) Change(name string, change func(*Counts)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[string]Counts{}
	}
	c := f.all[name]
	change(&c)
	f.all[name] = c
}

// All returns a copy of the figures.
func (f *Figures) All() map[string]Counts {
	f.mu.Lock()
	defer f.mu.Unlock()

	return maps.Clone(f.all)
}
