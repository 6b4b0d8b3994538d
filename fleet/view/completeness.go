package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
)

// completeness describes how complete a view is, without the parts that know it themselves.
type completeness struct {
	noted func()

	mu                sync.RWMutex
	lastRuns, history bool
	since             time.Time
	shares            fullShares
	truncated         truncated
	problems          map[string]string
	notice            string
}

func newCompleteness(keep time.Duration, noted func()) *completeness {
	return &completeness{noted: noted, shares: fullShares{keep: keep}, truncated: truncated{keep: keep}, problems: map[string]string{}}
}

// Progress returns how complete the view is.
func (f *Fleet) Progress() Progress { return f.progress("") }

// progress returns the progress for a node, or for an empty name for all.
func (f *Fleet) progress(node string) Progress {
	out := f.completeness.of(node)
	out.Nodes, out.BlindSince = f.nodes.IsComplete(), f.nodes.BlindSince()
	if invalid := f.log.Invalid(); invalid.Count > 0 {
		out.Incomplete = append(out.Incomplete, fmt.Sprintf("Messages of the stream of reports cannot be read, and are neither listed nor counted: %d; the last: %s", invalid.Count, invalid.Last))
	}

	return out
}

func (c *completeness) of(node string) Progress {
	c.mu.RLock()
	defer c.mu.RUnlock()
	now := time.Now()
	out := Progress{LastRuns: c.lastRuns, History: c.history, Since: c.since, Problems: []string{}, Notice: c.notice, Incomplete: append(c.truncated.missing(now), c.shares.missing(node, now)...)}
	for _, about := range slices.Sorted(maps.Keys(c.problems)) {
		out.Problems = append(out.Problems, c.problems[about])
	}

	return out
}

// change changes the progress and records a change.
func (c *completeness) change(by func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if by() {
		c.noted()
	}
}

// Problem sets the reason why the view may be outdated, one text for each subject, until Clear.
func (c *completeness) Problem(about, text string) {
	text = firstLine(text, maxText)
	c.change(func() bool {
		before, is := c.problems[about]
		c.problems[about] = text
		return !is || before != text
	})
}

// Clear removes a Problem.
func (c *completeness) Clear(about string) {
	c.change(func() bool {
		_, is := c.problems[about]
		delete(c.problems, about)
		return is
	})
}

// SetNotice sets the notice of the view; empty removes it. The view stays current.
func (c *completeness) SetNotice(text string) {
	text = firstLine(text, maxText)
	c.change(func() bool {
		before := c.notice
		c.notice = text
		return before != text
	})
}

// SetLastRuns records that the newest run of each node and outcome is known.
func (c *completeness) SetLastRuns() {
	c.change(func() bool {
		c.lastRuns = true
		return true
	})
}

// SetSince says that all reports are known that were stored since a time, and with all every one
// that is stored.
func (c *completeness) SetSince(since time.Time, all bool) {
	c.change(func() bool {
		c.since, c.history = since, all
		return true
	})
}

// truncated is the start time of the read part of the past, zero if all of it was read.
type truncated struct {
	keep  time.Duration
	since time.Time
}

// SetTruncated records that only reports stored since a time were read. Earlier reports are missing until
// their retention time ends.
func (c *completeness) SetTruncated(since time.Time) {
	c.change(func() bool {
		c.since, c.history = since, true
		c.truncated.since = since
		return true
	})
}

// missing describes the missing part in at most one line.
func (t truncated) missing(now time.Time) []string {
	if t.since.IsZero() || now.Sub(t.since) >= t.keep {
		return nil
	}

	return []string{"There are more reports than are read of the past: those before " + t.since.UTC().Format("2006-01-02 15:04 MST") + " are neither listed nor counted."}
}

// Shares counts the stored messages of reports by node, kind and outcome. The stream limits their number, see
// model.ReportBounds. The zero value is ready.
type Shares struct{ all map[string]*Share }

// Share describes the messages of one node, kind and outcome.
type Share struct {
	Node string
	// Name consists of the node, the kind and the outcome.
	Name string
	// Oldest is the time at which the oldest message was stored.
	Oldest time.Time
	count  int
}

// Add counts a message.
func (s *Shares) Add(m model.StoredReports) {
	if len(m.Reports) == 0 {
		return
	}
	if s.all == nil {
		s.all = map[string]*Share{}
	}
	first := m.Reports[0]
	name := fmt.Sprintf("%s (%s %s)", first.Node, first.Kind, first.Outcome)
	if len(m.Reports) > 1 {
		name = first.Node + " (" + first.Kind + ")" // a batch has one share for all outcomes
	}
	share := s.all[name]
	if share == nil {
		share = &Share{Node: strings.Clone(first.Node), Name: name, Oldest: m.Stored}
		s.all[name] = share
	}
	share.count++
	if m.Stored.Before(share.Oldest) {
		share.Oldest = m.Stored
	}
}

// Full returns the shares that reached the limit, by name. Their older messages may be missing.
func (s *Shares) Full(b model.ReportBounds) []Share {
	var full []Share
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		if share := s.all[name]; b.PerSubject > 0 && share.count >= b.PerSubject {
			full = append(full, *share)
		}
	}

	return full
}

// fullShares are the shares that were full when the past was read: earlier reports are missing until their
// retention time ends. They are sorted by name.
type fullShares struct {
	keep time.Duration
	most int
	all  []Share
}

// maxShares limits the named shares.
const maxShares = 4

// SetShares sets the full shares, each with at most most messages. Their older reports are missing.
func (c *completeness) SetShares(most int, full []Share) {
	full = slices.SortedFunc(slices.Values(full), func(a, b Share) int { return strings.Compare(a.Name, b.Name) })
	c.change(func() bool {
		c.shares.most, c.shares.all = most, full
		return true
	})
}

// missing describes the missing reports of a node, or of all for an empty name, in at most one line.
func (s fullShares) missing(node string, now time.Time) []string {
	var names []string
	more := 0
	for _, one := range s.all {
		switch {
		case node != "" && one.Node != node || now.Sub(one.Oldest) >= s.keep:
		case len(names) == maxShares:
			more++
		default:
			names = append(names, firstLine(one.Name, maxWord)+" before "+one.Oldest.UTC().Format("2006-01-02 15:04 MST"))
		}
	}
	if len(names) == 0 {
		return nil
	}
	text := strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}

	return []string{fmt.Sprintf("The newest %d reports of a node, kind and outcome are stored. Older ones are neither listed nor counted: %s.", s.most, text)}
}

// WebhookProblem is the reason why deliveries of a webhook fail, are late or lack reports. It does not affect
// whether the view is current.
type WebhookProblem struct {
	Webhook string `json:"webhook"`
	// Problem describes the problem in one line.
	Problem string `json:"problem"`
	// Failing means that no delivery succeeds.
	Failing bool `json:"failing"`
}

// webhooks are the problems of webhooks.
type webhooks struct {
	noted func()

	mu       sync.RWMutex
	problems map[webhookID]webhookNotice
}

// webhookID identifies a problem of a webhook.
type webhookID struct{ webhook, about string }

// webhookNotice is the shown text of a problem.
type webhookNotice struct {
	text    string
	failing bool
}

func newWebhooks(noted func()) *webhooks {
	return &webhooks{noted: noted, problems: map[webhookID]webhookNotice{}}
}

// Webhook reports the problems of one webhook.
type Webhook struct {
	of   *webhooks
	name string
}

// Webhook returns the reporter of a webhook's problems.
func (f *Fleet) Webhook(name string) Webhook { return Webhook{f.webhooks, name} }

// Problem sets the reason why deliveries fail, one text for each subject, until Clear.
func (w Webhook) Problem(about, text string) { w.show(about, text, true) }

// Warning sets the reason why deliveries are late or incomplete, like Problem.
func (w Webhook) Warning(about, text string) { w.show(about, text, false) }

func (w Webhook) show(about, text string, failing bool) {
	all, id := w.of, webhookID{w.name, about}
	all.mu.Lock()
	defer all.mu.Unlock()
	if now := (webhookNotice{firstLine(text, maxText), failing}); all.problems[id] != now {
		all.problems[id] = now
		all.noted()
	}
}

// Clear removes a Problem or a Warning.
func (w Webhook) Clear(about string) {
	all, id := w.of, webhookID{w.name, about}
	all.mu.Lock()
	defer all.mu.Unlock()
	if _, is := all.problems[id]; is {
		delete(all.problems, id)
		all.noted()
	}
}

// all returns the problems by webhook.
func (w *webhooks) all() []WebhookProblem {
	w.mu.RLock()
	defer w.mu.RUnlock()
	out := []WebhookProblem{}
	for id, now := range w.problems {
		out = append(out, WebhookProblem{id.webhook, now.text, now.failing})
	}
	slices.SortFunc(out, func(a, b WebhookProblem) int {
		return cmp.Or(cmp.Compare(a.Webhook, b.Webhook), cmp.Compare(a.Problem, b.Problem))
	})

	return out
}
