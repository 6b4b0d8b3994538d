package view

import (
	"cmp"
	"slices"
	"sync"
)

// WebhookProblem is why a webhook is not delivered, or late, or lacks reports. It says nothing about whether the view
// is up to date.
type WebhookProblem struct {
	Webhook string `json:"webhook"`
	// Problem is what is wrong, in a line.
	Problem string `json:"problem"`
	// Failing is whether nothing is delivered.
	Failing bool `json:"failing"`
}

// webhooks are the problems of webhooks.
type webhooks struct {
	noted func()

	mu       sync.RWMutex
	problems map[webhookID]webhookNotice
}

// webhookID tells problems of webhooks apart.
type webhookID struct{ webhook, about string }

// webhookNotice is what is shown of a problem.
type webhookNotice struct {
	text    string
	failing bool
}

func newWebhooks(noted func()) *webhooks {
	return &webhooks{noted: noted, problems: map[webhookID]webhookNotice{}}
}

// Webhook is where it is said why one webhook is not delivered, or late.
type Webhook struct {
	of   *webhooks
	name string
}

// Webhook returns where problems of a webhook are said.
func (f *Fleet) Webhook(name string) Webhook { return Webhook{f.webhooks, name} }

// Problem says why the webhook is not delivered, one text for each thing that it is about, until Clear.
func (w Webhook) Problem(about, text string) { w.show(about, text, true) }

// Warning says that the webhook is delivered late, or not in full, as Problem does.
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

// Clear ends a Problem or a Warning.
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
