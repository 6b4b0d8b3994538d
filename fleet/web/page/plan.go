package page

import (
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"

	"github.com/musterfleet/muster/fleet/view"
)

// whoSeesPlans is for whoever writes what is previewed.
const whoSeesPlans = "Only the role operate sees plans, and what nodes say of them."

// PreviewForm is what the page shows on which a preview is chosen.
type PreviewForm struct {
	Acts
	// Progress is how complete the fleet is.
	Progress view.Progress
	// Keys are those of the assignments.
	Keys []string
	// What was filled in, and why it did nothing.
	Key, Revision, Name, Manifest, On, Within, Problem string
	// Busy is that there was no place for it.
	Busy bool
}

// maxKeys is how many assignments can be chosen.
const maxKeys = 1000

// keys are the assignments that can be chosen, with one that was.
func (f PreviewForm) keys() []string {
	all := f.Keys[:min(len(f.Keys), maxKeys)]
	if f.Key != "" && !slices.Contains(all, f.Key) {
		all = append([]string{f.Key}, all...)
	}

	return all
}

// previewURL returns the page on which a revision of an assignment is previewed, for those that it is for.
func previewURL(key string, revision uint64) templ.SafeURL {
	on := ""
	if t, _, err := fleet.ParseKey(key); err == nil {
		on = "node == " + strconv.Quote(t.Node)
		if t.Node == "" {
			on = "group(" + strconv.Quote(t.Group) + ")"
		}
	}

	return at(values("key", key, "revision", strconv.FormatUint(revision, 10), "on", on), "actions", "preview")
}

// planSteps are the resources of the plans of an action, which share the texts of the page.
func planSteps(a ask.Action) [][]step {
	b := &budget{maxTexts}
	out := make([][]step, len(a.Plans))
	for i, g := range a.Plans {
		if g.Plan == nil {
			continue
		}
		for _, t := range g.Plan.Transactions[:min(len(g.Plan.Transactions), maxSteps/5)] {
			s := newStep(t, b)
			s.open = i == 0 || s.open
			out[i] = append(out[i], s)
		}
	}

	return out
}

// planText is what a plan comes to, in a few words.
func planText(g ask.Group) string {
	switch {
	case g.Error != "":
		return Row(g.Error)
	case g.Plan == nil:
		return ""
	case g.Plan.Inactive != "":
		return Row(g.Plan.Inactive)
	}
	c := g.Plan.Counts
	of := " of " + Count(c.Total, "resource") + " would "
	bad := c.Failed + c.Unmet + c.NotRun
	switch {
	case bad > 0 && c.Changed > 0:
		return Number(bad) + of + "fail or not run, " + Number(c.Changed) + " would change"
	case bad > 0:
		return Number(bad) + of + "fail or not run"
	case len(g.Plan.Errors) > 0:
		return "nodes would reject it"
	default:
		return Number(c.Changed) + of + "change"
	}
}

// previewedText is what was previewed.
func previewedText(p *ask.Previewed) string {
	if p.Key == "" {
		return "a pasted manifest, as " + Row(p.Name)
	}

	return Row(p.Key) + ", revision " + RevisionText(p.Revision)
}
