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
	// noted is called after a change that readers see.
	noted func()
	keep  time.Duration

	mu                sync.RWMutex
	lastRuns, history bool
	since             time.Time
	// truncated is the start time of the read part of the past, zero if all of it was read.
	truncated time.Time
	// full are the shares that were full when the past was read, by name, and maxShare their limit. Their earlier
	// reports are missing until their retention time ends.
	full     []Share
	maxShare int
	problems map[problemID]problem
	notice   string
}

type problemID struct{ webhook, about string }

type problem struct {
	text    string
	failing bool
}

// Progress returns how complete the view is.
func (f *Fleet) Progress() Progress { return f.progress("") }

// progress returns the progress for a node, or for an empty name for all.
func (f *Fleet) progress(node string) Progress {
	out := f.completeness.of(node, time.Now())
	out.Nodes, out.BlindSince = f.completeNodes()
	if text := f.unreadable(); text != "" {
		out.Incomplete = append(out.Incomplete, text)
	}

	return out
}

func (c *completeness) of(node string, now time.Time) Progress {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := Progress{LastRuns: c.lastRuns, History: c.history, Since: c.since, Problems: []string{}, Notice: c.notice}
	if !c.truncated.IsZero() && now.Sub(c.truncated) < c.keep {
		out.Incomplete = append(out.Incomplete, "There are more reports than are read of the past: those before "+c.truncated.UTC().Format("2006-01-02 15:04 MST")+" are neither listed nor counted.")
	}
	if missing := c.missing(node, now); missing != "" {
		out.Incomplete = append(out.Incomplete, missing)
	}
	about := slices.SortedFunc(maps.Keys(c.problems), func(a, b problemID) int { return cmp.Compare(a.about, b.about) })
	for _, id := range about {
		if id.webhook == "" {
			out.Problems = append(out.Problems, c.problems[id].text)
		}
	}

	return out
}

const maxShares = 4

// missing describes the missing reports of a node, or of all for an empty name, in at most one line.
func (c *completeness) missing(node string, now time.Time) string {
	var names []string
	for _, one := range c.full {
		if (node == "" || one.Node == node) && now.Sub(one.Oldest) < c.keep {
			names = append(names, firstLine(one.Name, maxWord)+" before "+one.Oldest.UTC().Format("2006-01-02 15:04 MST"))
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := strings.Join(names[:min(len(names), maxShares)], ", ")
	if more := len(names) - maxShares; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}

	return fmt.Sprintf("The newest %d reports of a node, kind and outcome are stored. Older ones are neither listed nor counted: %s.", c.maxShare, text)
}

func (c *completeness) change(by func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	by()
	c.noted()
}

// Problem sets the reason why the view may be outdated, one text for each subject, until Clear.
func (c *completeness) Problem(about, text string) {
	c.show(problemID{about: about}, problem{text, true})
}

// Clear removes a Problem.
func (c *completeness) Clear(about string) { c.show(problemID{about: about}, problem{}) }

// show sets or, without a text, removes a problem.
func (c *completeness) show(id problemID, p problem) {
	p.text = firstLine(p.text, maxText)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.problems[id] == p {
		return
	}
	if c.problems[id] = p; p.text == "" {
		delete(c.problems, id)
	}
	c.noted()
}

// SetNotice sets the notice of the view, in full; empty removes it. The view stays current.
func (c *completeness) SetNotice(text string) {
	c.change(func() { c.notice = text })
}

// SetLastRuns records that the newest run of each node and outcome is known.
func (c *completeness) SetLastRuns() { c.change(func() { c.lastRuns = true }) }

// SetSince records that all reports are known that were stored since a time. all means that no more are read. truncated
// means that earlier reports are missing until their retention time ends.
func (c *completeness) SetSince(since time.Time, all, truncated bool) {
	c.change(func() {
		if c.since, c.history = since, all; truncated {
			c.truncated = since
		}
	})
}

// SetShares sets the full shares, each with at most most messages. Their older reports are missing.
func (c *completeness) SetShares(most int, full []Share) {
	full = slices.SortedFunc(slices.Values(full), func(a, b Share) int { return strings.Compare(a.Name, b.Name) })
	c.change(func() { c.maxShare, c.full = most, full })
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

// Webhook reports the problems of one webhook.
type Webhook struct {
	view *completeness
	name string
}

// Webhook returns the reporter of a webhook's problems.
func (c *completeness) Webhook(name string) Webhook { return Webhook{c, name} }

// Problem sets the reason why deliveries fail, one text for each subject, until Clear.
func (w Webhook) Problem(about, text string) {
	w.view.show(problemID{w.name, about}, problem{text, true})
}

// Warning sets the reason why deliveries are late or incomplete, like Problem.
func (w Webhook) Warning(about, text string) {
	w.view.show(problemID{w.name, about}, problem{text, false})
}

// Clear removes a Problem or a Warning.
func (w Webhook) Clear(about string) { w.view.show(problemID{w.name, about}, problem{}) }

func (c *completeness) webhooks() []WebhookProblem {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := []WebhookProblem{}
	for id, p := range c.problems {
		if id.webhook != "" {
			out = append(out, WebhookProblem{id.webhook, p.text, p.failing})
		}
	}
	slices.SortFunc(out, func(a, b WebhookProblem) int {
		return cmp.Or(cmp.Compare(a.Webhook, b.Webhook), cmp.Compare(a.Problem, b.Problem))
	})

	return out
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
