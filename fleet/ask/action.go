package ask

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/view"

	"github.com/musterfleet/muster/model"
)

const (
	// maxResults is how many nodes an action names, those that need attention first.
	maxResults = 200
	// maxRuns is how many runs are kept of a node, maxText how many bytes of a text: nodes write both.
	maxRuns = 10
	maxText = 500
)

// Action is what is done, and what came of it so far.
type Action struct {
	Spec
	ID string `json:"id"`
	// Request is the id of what nodes were asked, empty where they were not.
	Request string `json:"request,omitempty"`
	// Nodes is how many it is for.
	Nodes int       `json:"nodes"`
	Begun time.Time `json:"begun"`
	// Ended is zero while it goes on.
	Ended time.Time `json:"ended,omitzero"`
	// States count the nodes, Results are what came of the first of them, those that need attention
	// first; More is how many others there are.
	States  []StateCount `json:"states"`
	Results []Result     `json:"results"`
	More    int          `json:"more,omitempty"`
	// Plans are those of a preview, equal ones once, that of the most nodes first; MorePlans is how many
	// others there are.
	Plans     []Group `json:"plans,omitempty"`
	MorePlans int     `json:"more_plans,omitempty"`
	// Notes are what whoever acts should know.
	Notes []string `json:"notes,omitempty"`
	// Error is why it came to nothing, or not to its end.
	Error string `json:"error,omitempty"`
	// CancelledBy is who ended it before its end, empty where nobody did.
	CancelledBy string `json:"cancelled_by,omitempty"`
	// Withheld is that plans and texts are left out, which only the role operate sees.
	Withheld bool `json:"withheld,omitempty"`
}

// VisibleTo returns what somebody is shown of it, who has the role operate or only reads: readers of a preview
// neither plans nor texts. They have contents of files, which whoever previews may have written, or nodes have.
func (a Action) VisibleTo(operates bool) Action {
	if operates || a.Kind != Preview {
		return a
	}
	a.Withheld, a.Plans, a.MorePlans = true, nil, 0
	a.Results = slices.Clone(a.Results)
	for i := range a.Results {
		a.Results[i].Text = ""
	}
	if a.Error != "" {
		a.Error = "it failed; why needs the role operate"
	}

	return a
}

// OK reports whether it has ended, and nothing failed.
func (a Action) OK() bool {
	return !a.Ended.IsZero() && a.Error == "" && !slices.ContainsFunc(a.States, func(s StateCount) bool { return s.State != StateDone })
}

// StateCount is how many nodes are in a state of an action.
type StateCount struct {
	State State `json:"state"`
	Nodes int   `json:"nodes"`
}

// Result is what came of an action on one node.
type Result struct {
	Node  string  `json:"node"`
	State State   `json:"state"`
	Text  string  `json:"text,omitempty"`
	Runs  []RunOf `json:"runs,omitempty"`
}

// RunOf is a run that was made.
type RunOf struct {
	Manifest string        `json:"manifest"`
	RunID    string        `json:"run_id,omitempty"`
	Outcome  model.Outcome `json:"outcome"`
	Text     string        `json:"text,omitempty"`
}

// resultOf returns the result that an answer tells.
func resultOf(r model.EnsureResponse) Result {
	out := Result{Node: r.Node, State: StateOf(r), Text: cut(view.DescribeAnswer(r))}
	if len(r.Runs) > 0 && r.Error == "" {
		out.Text = view.DescribeRuns(r.Runs) // the runs have their errors
	}
	for _, run := range r.Runs[:min(len(r.Runs), maxRuns)] {
		text := run.Error
		if text == "" {
			text = run.Counts.Text()
		}
		out.Runs = append(out.Runs, RunOf{Manifest: cut(run.Manifest), RunID: cut(run.RunID), Outcome: model.Outcome(cut(string(run.Outcome))), Text: cut(text)})
	}

	return out
}

func cut(text string) string {
	if len(text) <= maxText {
		return text
	}

	return strings.ToValidUTF8(text[:maxText], "") + " …"
}

// sorted returns the counts of results, and the first of them: those that need attention come first.
func sorted(all map[string]Result) ([]StateCount, []Result) {
	order := func(s State) int {
		if s == StateDone {
			return len(States())
		}
		return slices.Index(States(), s)
	}
	counts := map[State]int{}
	results := make([]Result, 0, len(all))
	for _, r := range all {
		counts[r.State]++
		results = append(results, r)
	}
	states := []StateCount{}
	for _, s := range States() {
		if counts[s] > 0 {
			states = append(states, StateCount{s, counts[s]})
		}
	}
	slices.SortFunc(results, func(a, b Result) int {
		return cmp.Or(cmp.Compare(order(a.State), order(b.State)), strings.Compare(a.Node, b.Node))
	})

	return states, results[:min(len(results), maxResults)]
}
