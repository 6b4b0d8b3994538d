package model

import "time"

// MaxPreview is how long a preview may be valid: nodes remember as long what they were asked.
const MaxPreview = time.Hour

// PreviewRequest asks what an assignment would change on a node (io.muster.v1.preview.request),
// which is not assigned by that.
type PreviewRequest struct {
	Protocol string    `json:"protocol"`
	ID       string    `json:"id"`
	Expires  time.Time `json:"expires"`
	// Name is that of the assignment: it would replace what is assigned under it.
	Name string `json:"name"`
	// Value is what would be assigned, a manifest or an assignment document.
	Value string `json:"value"`
}

// Plan is what a run of an assignment would change on a node.
type Plan struct {
	Counts Counts `json:"counts"`
	// Inactive is why nothing would run at all, empty where it would.
	Inactive string `json:"inactive,omitempty" jsonschema_description:"Why nothing would run; absent where it would"`
	// Transactions are those of the resources that would change, fail or not run, in their order.
	Transactions []Transaction `json:"transactions,omitempty" jsonschema_description:"Of the resources that would change, fail or not run, in their order"`
	// Errors are those of no single resource, also why nodes would reject it.
	Errors []string `json:"errors,omitempty" jsonschema_description:"Errors of no single resource, also why the node would reject it"`
	// Cut is that something is left out to bound the answer.
	Cut bool `json:"cut,omitempty" jsonschema_description:"Something is left out, because the plan is long"`
	// Digest is that of all of the plan, what is left out included: equal plans have equal ones.
	Digest string `json:"digest" jsonschema_description:"sha256-… of the whole plan, what is left out included"`
}

// OK reports whether every resource would be in its desired state after the run.
func (p *Plan) OK() bool {
	return len(p.Errors) == 0 && p.Counts.Failed == 0 && p.Counts.Unmet == 0 && p.Counts.NotRun == 0
}
