package view_test

import (
	"slices"
	"testing"

	"github.com/musterfleet/muster/fleet/view"
)

// TestWarningsOfWebhooks: a late webhook is not a failing one until it fails.
func TestWarningsOfWebhooks(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	w := f.Webhook("pager")
	has := func(want ...view.WebhookProblem) {
		t.Helper()
		if got := f.Overview().Webhooks; !slices.Equal(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	late := view.WebhookProblem{Webhook: "pager", Problem: "it is late"}
	w.Warning("late", "it is late")
	has(late)
	w.Problem("away", "it is away")
	has(view.WebhookProblem{Webhook: "pager", Problem: "it is away", Failing: true}, late)
	w.Clear("late")
	w.Problem("late", "it is late")
	w.Clear("away")
	late.Failing = true
	has(late)
	w.Clear("late")
	has()
}
