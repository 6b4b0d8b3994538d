package view

import (
	"cmp"
	"slices"
	"sync"
)

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
