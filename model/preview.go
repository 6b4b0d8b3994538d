package model

import "time"

// MaxPreview limits the validity of a preview. Nodes remember request ids as long.
const MaxPreview = time.Hour

// PreviewRequest asks a node for the plan of an assignment without assigning it
// (io.muster.v1.preview.request).
type PreviewRequest struct {
	Protocol string    `json:"protocol"`
	ID       string    `json:"id"`
	Expires  time.Time `json:"expires"`
	// Name is the name of the assignment that the value would replace.
	Name string `json:"name"`
	// Value is a manifest or an assignment document.
	Value string `json:"value"`
}

// Plan contains the changes that a run of an assignment would make on a node.
type Plan struct {
	Counts Counts `json:"counts"`
	// Inactive is the reason why the manifest would not run, empty if it would.
	Inactive string `json:"inactive,omitempty" jsonschema_description:"Reason why the manifest would not run; absent if it would"`
	// Transactions are the results of the resources that would change, fail or not run, in order.
	Transactions []Transaction `json:"transactions,omitempty" jsonschema_description:"Results of the resources that would change, fail or not run, in order"`
	// Errors are the errors that belong to no single resource, including the reason for a rejection.
	Errors []string `json:"errors,omitempty" jsonschema_description:"Errors that belong to no single resource, including the reason for a rejection"`
	// Cut means that the plan is incomplete because the answer is limited.
	Cut bool `json:"cut,omitempty" jsonschema_description:"The plan is incomplete because it is long"`
	// Digest is the digest of the complete plan. Equal plans have equal digests.
	Digest string `json:"digest" jsonschema_description:"sha256-… of the complete plan"`
}

// OK reports whether every resource would be in its desired state after the run.
func (p *Plan) OK() bool {
	return len(p.Errors) == 0 && p.Counts.Failed == 0 && p.Counts.Unmet == 0 && p.Counts.NotRun == 0
}
