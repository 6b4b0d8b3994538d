// Package attention counts which resources need attention in a fleet, and why: those that fail, drift or flap, in bounded
// memory, over the time that is kept.
package view

import (
	"time"
)

// Kind is why a resource needs attention.
type attentionKind int

// The kinds.
const (
	kindFailing attentionKind = iota
	kindDrifting
	kindFlapping
	attentionKinds
)

// Attention is that a resource of a manifest needs some; Text is the error, or what drifted.
type attention struct {
	Kind                     attentionKind
	Manifest, Resource, Text string
}

// Top are the resources that need attention most, the most frequent first; of those that fail, the ones that
// do now, on most nodes.
type Top struct {
	Failing  []TopResource `json:"failing"`
	Drifting []TopResource `json:"drifting"`
	Flapping []TopResource `json:"flapping"`
}

// TopResource is a resource of a manifest, and how often something happened to it since
// Progress.Since, or within the time that is kept. A failure that goes on is reported once a day, and counts
// as often.
type TopResource struct {
	Manifest string    `json:"manifest"`
	Resource string    `json:"resource"`
	Count    int       `json:"count"`
	Last     time.Time `json:"last"`
	// Text is the newest error, or what drifted.
	Text string `json:"text"`
	// Now is on how many nodes it is the first error of the last run, by their states, and Since is since when, of
	// the error that most of them have; both are zero for what is not known to fail now, drifts or flaps.
	Now int `json:"failing_now,omitempty"`
	// AtLeast is whether Now is a lower bound: on other nodes more than one resource of the manifest failed, and
	// another one first.
	AtLeast bool      `json:"failing_now_at_least,omitempty"`
	Since   time.Time `json:"failing_since,omitzero"`
	// Members are the nodes that reported it.
	Members
}
