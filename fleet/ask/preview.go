package ask

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/musterfleet/muster/model"
)

// maxPlan is how long a plan may be that counts; nodes send none that is longer than a quarter.
const maxPlan = 256 << 10

// Outcome is what a plan comes to.
type Outcome string

// The outcomes, from that which needs the most attention.
const (
	WouldFail   Outcome = "would fail"
	NotKnown    Outcome = "not known"
	WouldChange Outcome = "would change"
	Inactive    Outcome = "would not run"
	NoChange    Outcome = "no change"
)

// Group lists nodes with the same plan or the same error.
type Group struct {
	Outcome Outcome     `json:"outcome"`
	Nodes   []string    `json:"nodes"`
	Plan    *model.Plan `json:"plan,omitempty"`
	// Error is why there is no plan.
	Error string `json:"error,omitempty"`
}

// PreviewResult groups the plans of nodes.
type PreviewResult struct {
	// Groups are the equal plans, that of the most nodes first.
	Groups []Group `json:"plans"`
	// Missing are the nodes that did not answer, Unfinished those that have not in time.
	Missing    []string `json:"missing,omitempty"`
	Unfinished []string `json:"unfinished,omitempty"`
}

// OK reports whether all nodes answered, at least one, and nothing would fail.
func (p *PreviewResult) OK() bool {
	bad := func(g Group) bool { return g.Outcome == WouldFail || g.Outcome == NotKnown }

	return len(p.Groups) > 0 && len(p.Missing)+len(p.Unfinished) == 0 && !slices.ContainsFunc(p.Groups, bad)
}

// Nodes returns how many nodes have a plan.
func (p *PreviewResult) Nodes() int {
	count := 0
	for _, g := range p.Groups {
		count += len(g.Nodes)
	}

	return count
}

// WouldFail returns how many nodes would fail, or cannot tell.
func (p *PreviewResult) WouldFail() int {
	count := 0
	for _, g := range p.Groups {
		if g.Outcome == WouldFail || g.Outcome == NotKnown {
			count += len(g.Nodes)
		}
	}

	return count
}

// PreviewDecoder decodes answers and stores equal plans once. The zero value is ready to use; it is not safe for concurrent use.
type PreviewDecoder struct {
	plans map[[sha256.Size]byte]*model.Plan
}

// errTooLong is a plan that no node of muster sends.
var errTooLong = errors.New("its plan is too long")

// Decode decodes the answer of a node.
func (d *PreviewDecoder) Decode(data []byte) (model.EnsureResponse, error) {
	var raw struct {
		model.EnsureResponse
		Plan json.RawMessage `json:"plan"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return model.EnsureResponse{}, fmt.Errorf("invalid answer: %w", err)
	}
	out := raw.EnsureResponse
	switch {
	case len(raw.Plan) == 0:
		return out, nil
	case len(raw.Plan) > maxPlan:
		return out, errTooLong
	}
	sum := sha256.Sum256(raw.Plan)
	if known := d.plans[sum]; known != nil {
		out.Plan = known
		return out, nil
	}
	plan, err := decodePlan(raw.Plan)
	if err != nil {
		return out, err
	}
	out.Plan = plan
	if d.plans == nil {
		d.plans = map[[sha256.Size]byte]*model.Plan{}
	}
	d.plans[sum] = out.Plan

	return out, nil
}

// decodePlan decodes a plan. One is too long also where it gets so by being encoded: without what nodes always
// write, such as the names of resources, a short one would fill much memory.
func decodePlan(data []byte) (*model.Plan, error) {
	var out *model.Plan
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("invalid plan: %w", err)
	}
	if encoded, err := json.Marshal(out); err != nil || len(encoded) > maxPlan {
		return nil, errTooLong
	}

	return out, nil
}

// MergePreviews groups answers decoded by one PreviewDecoder, in the order of their nodes.
func MergePreviews(r *Ensured) *PreviewResult {
	type essence struct {
		plan *model.Plan
		text string
	}
	out := &PreviewResult{Groups: []Group{}, Missing: r.Missing, Unfinished: r.Unfinished}
	places := map[essence]int{}
	for _, a := range r.Answers {
		if slices.Contains(r.Unfinished, a.Node) {
			continue
		}
		g := group(a)
		e := essence{g.Plan, g.Error}
		i, known := places[e]
		if !known {
			i = len(out.Groups)
			places[e] = i
			out.Groups = append(out.Groups, g)
		}
		out.Groups[i].Nodes = append(out.Groups[i].Nodes, a.Node)
	}
	slices.SortStableFunc(out.Groups, func(a, b Group) int { return cmp.Compare(len(b.Nodes), len(a.Nodes)) })

	return out
}

// group returns the group of an answer, without its node.
func group(a model.EnsureResponse) Group {
	p := a.Plan
	switch {
	case a.Error != "":
		return Group{Outcome: NotKnown, Error: a.Error}
	case a.Phase == model.EnsureExpired:
		return Group{Outcome: NotKnown, Error: "it did not come to an end in time"}
	case p == nil:
		return Group{Outcome: NotKnown, Error: "the answer has no plan"}
	case !p.OK():
		return Group{Outcome: WouldFail, Plan: p}
	case p.Inactive != "":
		return Group{Outcome: Inactive, Plan: p}
	case p.Counts.Changed > 0:
		return Group{Outcome: WouldChange, Plan: p}
	default:
		return Group{Outcome: NoChange, Plan: p}
	}
}
