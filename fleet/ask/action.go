package ask

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

const (
	// maxResults is the maximum number of nodes that an action lists.
	maxResults = 200
	// maxRuns is the maximum number of runs of a node, and maxText the maximum length of a text in bytes.
	maxRuns = 10
	maxText = 500
)

// Action is a started action with its results so far.
type Action struct {
	Spec
	ID string `json:"id"`
	// Request is the id of the request to nodes, empty without a request.
	Request string `json:"request,omitempty"`
	// Nodes is the number of target nodes.
	Nodes int       `json:"nodes"`
	Begun time.Time `json:"begun"`
	// Ended is zero while the action is in progress.
	Ended time.Time `json:"ended,omitzero"`
	// States counts the nodes by state. Results lists the first nodes, problems first, and More is the number of other
	// nodes.
	States  []StateCount `json:"states"`
	Results []Result     `json:"results"`
	More    int          `json:"more,omitempty"`
	// Plans are the distinct plans of a preview, the most frequent first. MorePlans is the number of other plans.
	Plans     []Group `json:"plans,omitempty"`
	MorePlans int     `json:"more_plans,omitempty"`
	// Notes are remarks for the user.
	Notes []string `json:"notes,omitempty"`
	// Error is the reason why the action failed or stopped early.
	Error string `json:"error,omitempty"`
	// CancelledBy is the user who cancelled the action, if any.
	CancelledBy string `json:"cancelled_by,omitempty"`
	// Withheld is set if plans and texts are omitted because the user lacks the role operate.
	Withheld bool `json:"withheld,omitempty"`
}

// VisibleTo returns the action as a user may see it. Without the role operate, a preview has neither plans nor texts,
// because they contain parts of files.
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

// OK reports whether the action has ended without failures.
func (a Action) OK() bool {
	return !a.Ended.IsZero() && a.Error == "" && !slices.ContainsFunc(a.States, func(s StateCount) bool { return s.State != StateDone })
}

// StateCount is the number of nodes in a state.
type StateCount struct {
	State State `json:"state"`
	Nodes int   `json:"nodes"`
}

// Result is the result of an action on one node.
type Result struct {
	Node  string  `json:"node"`
	State State   `json:"state"`
	Text  string  `json:"text,omitempty"`
	Runs  []RunOf `json:"runs,omitempty"`
}

// RunOf is a run of a manifest for an action.
type RunOf struct {
	Manifest string        `json:"manifest"`
	RunID    string        `json:"run_id,omitempty"`
	Outcome  model.Outcome `json:"outcome"`
	Text     string        `json:"text,omitempty"`
}

// resultOf returns the result for an answer.
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

// sorted returns the counts by state and the first results, problems first.
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

// maxPlans is the maximum number of distinct plans of an action, and maxPlanBytes their maximum total size.
const (
	maxPlans     = 30
	maxPlanBytes = 2 << 20
)

// tooLong replaces a plan that exceeds maxPlanBytes.
const tooLong = "the plan is too long to show"

// unsignedPreview is the note if nodes reject an unsigned preview.
const unsignedPreview = "nodes with trust.keys preview only what a key they trust has signed, and this server signs no previews, or by another key: use muster fleet preview --sign-key FILE; or see --sign-previews of muster fleet serve"

// preview requests the plans of the nodes.
func (r *record) preview(ctx context.Context) error {
	// Nodes do not report previews, so the id needs no user name.
	asked := model.PreviewRequest{
		Protocol: model.ProtocolPreviewRequest, ID: ksuid.New().String(), Expires: r.x.Now().Add(r.Within).UTC(), Name: r.Previewed.Name, Value: r.Previewed.Value,
	}
	found, err := r.x.Backend.Preview(ctx, r.nodes, asked, func(a model.EnsureResponse) { r.set(Result{Node: a.Node, State: StateRunning}) })
	if found != nil {
		r.planned(ctx, found)
	}

	return err
}

// planned records the plans and the result of each node.
func (r *record) planned(ctx context.Context, found *PreviewResult) {
	for _, g := range found.Groups {
		state := StateDone
		if g.Outcome == WouldFail || g.Outcome == NotKnown {
			state = StateFailed
		}
		for _, node := range g.Nodes {
			r.set(Result{Node: node, State: state, Text: cut(cmp.Or(g.Error, string(g.Outcome)))})
		}
		if strings.Contains(g.Error, "not signed") {
			r.note(unsignedPreview)
		}
	}
	for _, node := range found.Missing {
		r.set(silent(ctx, node))
	}
	for _, node := range found.Unfinished {
		if ctx.Err() != nil {
			r.set(Result{Node: node, State: StateRunning, Text: "still in progress when the action ended"})
			continue
		}
		r.set(Result{Node: node, State: StateExpired, Text: "did not finish in time"})
	}
	kept := keptOf(found.Groups)
	r.edit(func() { r.Plans, r.MorePlans = kept, len(found.Groups)-len(kept) })
}

// keptOf returns the first plans and replaces those that are too long.
func keptOf(all []Group) []Group {
	out := slices.Clone(all[:min(len(all), maxPlans)]) // releases the other plans
	left := maxPlanBytes
	for i, g := range out {
		out[i].Error = cut(g.Error)
		if g.Plan == nil {
			continue
		}
		text, err := json.Marshal(g.Plan)
		if err != nil || len(text) > left {
			out[i].Plan, out[i].Error = nil, tooLong
			continue
		}
		left -= len(text)
	}

	return out
}

// run requests runs of assigned manifests.
func (r *record) run(ctx context.Context) error {
	id := RequestID(r.By)
	r.edit(func() { r.Request = id })
	asked := model.RunRequest{Protocol: model.ProtocolRunRequest, ID: id, Manifests: r.Manifests, Noop: r.Noop, Expires: r.x.Now().Add(r.Within).UTC()}
	limit, cancel := context.WithTimeout(ctx, r.Within)
	defer cancel()
	from := model.Sender{By: r.By, Nodes: len(r.nodes), To: fleet.JoinTargets(r.Target.families()), On: r.Target.On}
	result, err := r.x.Backend.Run(limit, from, r.nodes, asked, func(a model.EnsureResponse) { r.set(resultOf(a)) })
	if result != nil {
		r.conclude(ctx, result)
	}

	return err
}

// conclude records the result of each node.
func (r *record) conclude(ctx context.Context, found *Ensured) {
	for _, a := range found.Answers {
		r.set(resultOf(a))
		if strings.Contains(a.Error, "not signed") {
			r.note(unsignedNote)
		}
	}
	for _, node := range found.Missing {
		r.set(silent(ctx, node))
	}
}

// silent returns the result of a node that has not answered. If the action was ended early, the node is pending.
func silent(ctx context.Context, node string) Result {
	if ctx.Err() != nil {
		return Result{Node: node, State: StatePending, Text: "no answer before the action ended"}
	}

	return Result{Node: node, State: StateUnreachable, Text: "has not answered"}
}

// RequestID returns a new id of a request. It names the user, because reports contain it.
func RequestID(by string) string { return ksuid.New().String() + " by " + by }
