package ask

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/musterfleet/muster/model"
)

// maxPlan is the maximum length of a plan. Nodes send at most a quarter.
const maxPlan = 256 << 10

// Outcome is the outcome of a plan.
type Outcome string

// The outcomes, problems first.
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
	// Error is the reason for a missing plan.
	Error string `json:"error,omitempty"`
}

// PreviewResult groups the plans of nodes.
type PreviewResult struct {
	// Groups are the distinct plans, the most frequent first.
	Groups []Group `json:"plans"`
	// Missing are the nodes that did not answer, and Unfinished those that did not finish in time.
	Missing    []string `json:"missing,omitempty"`
	Unfinished []string `json:"unfinished,omitempty"`
}

// OK reports whether at least one node answered, none is missing and no plan would fail.
func (p *PreviewResult) OK() bool {
	bad := func(g Group) bool { return g.Outcome == WouldFail || g.Outcome == NotKnown }

	return len(p.Groups) > 0 && len(p.Missing)+len(p.Unfinished) == 0 && !slices.ContainsFunc(p.Groups, bad)
}

// Nodes returns the number of nodes with a plan or an error.
func (p *PreviewResult) Nodes() int {
	count := 0
	for _, g := range p.Groups {
		count += len(g.Nodes)
	}

	return count
}

// WouldFail returns the number of nodes that would fail or have no plan.
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

// errTooLong is the error of a plan longer than maxPlan.
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

// decodePlan decodes a plan. It also limits the encoded length, because a short plan without the usual fields can fill
// much memory.
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

// MergePreviews groups answers by plan. The answers must be ordered by node and decoded by the same PreviewDecoder.
func MergePreviews(r *Ensured) *PreviewResult {
	out := &PreviewResult{Groups: []Group{}, Missing: r.Missing, Unfinished: r.Unfinished}
	equal := GroupEqual(r.FinishedAnswers(), func(a model.EnsureResponse) (node, key string) {
		g := group(a)
		return a.Node, fmt.Sprintf("%p %s", g.Plan, g.Error)
	})
	for _, e := range equal {
		g := group(e.Value)
		g.Nodes = e.Nodes
		out.Groups = append(out.Groups, g)
	}

	return out
}

// group returns the group for an answer, without its node.
func group(a model.EnsureResponse) Group {
	p := a.Plan
	switch {
	case a.Error != "":
		return Group{Outcome: NotKnown, Error: a.Error}
	case a.Phase == model.EnsureExpired:
		return Group{Outcome: NotKnown, Error: "it did not finish in time"}
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
