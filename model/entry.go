package model

import (
	"slices"
	"time"
)

// Entry is one revision of an assignment in the bucket.
type Entry struct {
	// Key is the key in the bucket, Family.Name: node.<node>.<name> or group.<group>.<name>.
	Key    string `json:"key"`
	Family string `json:"-"`
	// Name is the name of the manifest in its family.
	Name string `json:"-"`
	// Revision is the bucket's number of this value. Later values have higher numbers.
	Revision uint64 `json:"revision"`
	// Digest is the digest of the manifest or the bundle. It is empty if it is unknown.
	Digest string `json:"digest,omitempty"`
	// Time is the time when the server stored the value.
	Time time.Time `json:"at,omitzero"`
	// By is the unverified name that the author gave, empty if the author gave none. Nodes ignore it.
	By string `json:"by,omitempty"`
	// Terms are the settings of an assignment document and whether the value is signed, nil for a plain
	// manifest. Nodes ignore them.
	Terms *Terms `json:"terms,omitempty"`
	// Deleted marks a revision that ended the assignment. It has no value.
	Deleted bool `json:"deleted,omitempty"`
	// Refused is the reason why no node uses the value, empty if nodes may use it.
	Refused string `json:"refused,omitempty"`
	// Invalid marks a key that is not valid for an assignment. No node reads it.
	Invalid bool `json:"invalid,omitempty"`
	// Value is a manifest, an assignment document or an envelope. Do not change it. Lists omit it.
	Value []byte `json:"value,omitempty"`
}

// Sync describes how completely a node knows its assignments.
type Sync struct {
	// At is the last time when the node knew all its assignments, zero before the first time.
	At time.Time
	// Known lists the families that the node has read completely since it started, in order of precedence.
	// Each family is read separately.
	Known []string
	// Failed lists, in order, the families that the last attempt could not read. Err has the reason.
	Failed []string
	// Err is the reason why the node does not know its assignments now, nil if it does. It may be temporary.
	Err error
	// Stream is the creation time of the bucket. A recreated bucket has another one.
	Stream time.Time
	// Kept lists, in order, the keys that stay active although they are missing from the bucket: the bucket
	// was recreated, restored or emptied. To end this, put or delete the key.
	Kept []string
	// Invalid lists, in order, the observed keys of the node's families that are not valid for an assignment.
	// No node reads them.
	Invalid []string
	// Unreadable lists, in order, the keys whose newest value has unreadable headers. The node ignores that
	// value, and the active revision stays active.
	Unreadable []string
	// Refused counts answers to other questions and forged messages since the agent started.
	Refused uint64
	// Denied is a subscription that NATS denied, nil for none. The node may notice puts late and miss
	// requests.
	Denied error
}

// Complete reports whether the entries are complete. Only then is a missing manifest unassigned.
func (s Sync) Complete() bool { return !s.At.IsZero() }

// Knows reports whether all entries of a family are known.
func (s Sync) Knows(family string) bool { return s.Complete() || slices.Contains(s.Known, family) }

// Memory is what a node stores across restarts. With it, the node distinguishes an unassigned manifest from
// one that the bucket lost.
type Memory struct {
	// Entries are the known keys and revisions, without values.
	Entries map[string]Entry
	// Stream and Kept are the fields of Sync.
	Stream time.Time
	Kept   []string
}
