package view

import (
	"cmp"
	"slices"
)

// WebhookProblem is why a webhook is not delivered. It says nothing about whether the view is up to date.
type WebhookProblem struct {
	Webhook string `json:"webhook"`
	// Problem is what is wrong, and since when, in a line.
	Problem string `json:"problem"`
}

// Webhook is where it is said why one webhook is not delivered.
type Webhook struct {
	fleet *Fleet
	name  string
}

// webhookID tells problems of webhooks apart.
type webhookID struct{ webhook, about string }

// Webhook returns where problems of a webhook are said.
func (f *Fleet) Webhook(name string) Webhook { return Webhook{f, name} }

// Problem says why the webhook is not delivered, one text for each thing that it is about, until Clear.
func (w Webhook) Problem(about, text string) {
	f, id := w.fleet, webhookID{w.name, about}
	f.mu.Lock()
	defer f.mu.Unlock()
	if text = line(text, maxText); f.webhooks[id] != text {
		f.webhooks[id] = text
		f.changes++
	}
}

// Clear ends a Problem.
func (w Webhook) Clear(about string) {
	f, id := w.fleet, webhookID{w.name, about}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, is := f.webhooks[id]; is {
		delete(f.webhooks, id)
		f.changes++
	}
}

// webhookProblems returns them by webhook.
func webhookProblems(all map[webhookID]string) []WebhookProblem {
	out := []WebhookProblem{}
	for id, text := range all {
		out = append(out, WebhookProblem{id.webhook, text})
	}
	slices.SortFunc(out, func(a, b WebhookProblem) int {
		return cmp.Or(cmp.Compare(a.Webhook, b.Webhook), cmp.Compare(a.Problem, b.Problem))
	})

	return out
}
