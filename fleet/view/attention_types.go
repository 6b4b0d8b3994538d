package view

import (
	"time"
)

// attentionKind is the reason why a resource needs attention.
type attentionKind int

// The kinds.
const (
	kindFailing attentionKind = iota
	kindDrifting
	kindFlapping
	attentionKinds
)

// attention records that a resource of a manifest needs attention. Text is the error or the drift.
type attention struct {
	Kind                     attentionKind
	Manifest, Resource, Text string
}

// Top are the resources that need attention most, the most frequent first. Of failing resources it contains
// the ones that fail now on most nodes.
type Top struct {
	Failing  []TopResource `json:"failing"`
	Drifting []TopResource `json:"drifting"`
	Flapping []TopResource `json:"flapping"`
}

// TopResource is a resource of a manifest and the number of its occurrences since Progress.Since or within
// the retention time. A lasting failure is reported and counted once a day.
type TopResource struct {
	Manifest string    `json:"manifest"`
	Resource string    `json:"resource"`
	Count    int       `json:"count"`
	Last     time.Time `json:"last"`
	// Text is the newest error or drift.
	Text string `json:"text"`
	// Now is the number of nodes whose last run has it as the first error. Since is the time of the error
	// that most of them have. Both are zero for a resource that does not fail now, drifts or flaps.
	Now int `json:"failing_now,omitempty"`
	// AtLeast means that Now is a lower bound: on other nodes another resource of the manifest failed first.
	AtLeast bool      `json:"failing_now_at_least,omitempty"`
	Since   time.Time `json:"failing_since,omitzero"`
	// Members are the nodes that reported it.
	Members
}
