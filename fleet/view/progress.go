package view

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// progress is how complete the view is.
type progress struct {
	nodes, assignments, lastRuns, history bool

	since    time.Time
	shares   fullShares
	problems map[string]string
	// invalid counts reports that cannot be read, lastInvalid is why the last cannot.
	invalid     int
	lastInvalid string
}

// Progress returns how complete the view is.
func (f *Fleet) Progress() Progress {
	f.mu.RLock()
	defer f.mu.RUnlock()

	return f.progress.get()
}

func (p *progress) get() Progress { return p.of("") }

// of is get for what is known of a node, of all for an empty name.
func (p *progress) of(node string) Progress {
	out := Progress{Nodes: p.nodes && p.assignments, LastRuns: p.lastRuns, History: p.history, Since: p.since, Problems: []string{}, Incomplete: p.shares.missing(node, time.Now())}
	for _, about := range slices.Sorted(maps.Keys(p.problems)) {
		out.Problems = append(out.Problems, p.problems[about])
	}
	if p.invalid > 0 {
		out.Incomplete = append(out.Incomplete, fmt.Sprintf("Messages of the stream of reports cannot be read, and are neither listed nor counted: %d; the last: %s", p.invalid, p.lastInvalid))
	}

	return out
}

// Problem says why the view may not be up to date, one text for each thing that it is about,
// until Clear.
func (f *Fleet) Problem(about, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if text = line(text, maxText); f.progress.problems[about] != text {
		f.progress.problems[about] = text
		f.changes++
	}
}

// Clear ends a Problem.
func (f *Fleet) Clear(about string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, is := f.progress.problems[about]; is {
		delete(f.progress.problems, about)
		f.changes++
	}
}

// SetLastRuns says that the newest run of each node and outcome is known.
func (f *Fleet) SetLastRuns() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.progress.lastRuns = true
	f.changes++
}

// SetSince says that all reports are known that were stored since a time, and with all every one
// that is stored.
func (f *Fleet) SetSince(since time.Time, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.progress.since, f.progress.history = since, all
	f.changes++
}
