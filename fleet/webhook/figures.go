package webhook

import (
	"maps"
	"sync"
	"time"
)

// Figures are what became of the reports for webhooks, by name. The zero value is ready; its methods
// may be called from several goroutines.
type Figures struct {
	mu  sync.Mutex
	all map[string]Counts
}

// Counts are the figures of one webhook since serve started.
type Counts struct {
	// Sent are the reports that the receiver took, Refused those that were given up.
	Sent, Refused uint64
	// OverShare are those that were left out since their node reports too much.
	OverShare uint64
	// Failing is whether the newest try failed.
	Failing bool
	// Sending is when the report was stored that is sent now, zero while there is none.
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
