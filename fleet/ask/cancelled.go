package ask

import (
	"slices"
	"strings"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// Cancelled is the result of a cancel.
type Cancelled struct {
	*Ensured
	// Withdrawn lists the nodes and groups with a removed queued request.
	Withdrawn []string `json:"withdrawn,omitempty"`

	// Request is the id of the cancelled request. Kills is set if the cancel kills it.
	Request string `json:"-"`
	Kills   bool   `json:"-"`
}

// IsRejected reports whether a node rejected a cancel. Accepted cancels carry the phase of the request.
func IsRejected(a model.EnsureResponse) bool { return a.Phase == "" }

// IsUnknown reports whether a node does not know the request to cancel.
func IsUnknown(a model.EnsureResponse) bool { return StateOf(a) == StateUnknown }

// OK reports whether all nodes answered, none still runs the request, and a node or the queue knew it.
func (r Cancelled) OK() bool {
	for _, a := range r.Answers {
		if IsRejected(a) || !a.Phase.Final() {
			return false
		}
	}

	return len(r.Missing) == 0 && !r.IsUnknown()
}

// IsUnknown reports whether no node that answered and no queue knew the request: its id may be mistyped.
func (r Cancelled) IsUnknown() bool {
	return len(r.Answers) > 0 && len(r.Withdrawn) == 0 && !slices.ContainsFunc(r.Answers, func(a model.EnsureResponse) bool { return !IsUnknown(a) })
}

// IsKilled reports whether the cancel killed the request.
func (r Cancelled) IsKilled(a model.EnsureResponse) bool {
	return r.Kills && Failed(a) && strings.Contains(view.DescribeAnswer(a), model.CancelRequest{}.String())
}
