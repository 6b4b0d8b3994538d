package model

import (
	"slices"
	"time"
)

// Entry is one revision of an assignment in the bucket.
type Entry struct {
	// Key is the key in the bucket, Family.Name: node.<node>.<name> or
	// group.<group>.<name>.
	Key    string `json:"key"`
	Family string `json:"-"`
	// Name is that of the manifest within its family.
	Name string `json:"-"`
	// Revision is the bucket's number for this value; a later value has a higher one.
	Revision uint64 `json:"revision"`
	// Digest is that of what runs, the manifest or the bundle, where it is known.
	Digest string `json:"digest,omitempty"`
	// Time is when the server stored it.
	Time time.Time `json:"at,omitzero"`
	// By is who wrote it, as they said, which nobody has verified; empty where they did not. Nodes do not
	// read it.
	By string `json:"by,omitempty"`
	// Terms are those of a document around the manifest, and whether there is a signature; nil for none. Nodes
	// do not read them here.
	Terms *Terms `json:"terms,omitempty"`
	// Deleted is a revision that ended the assignment; it has no value.
	Deleted bool `json:"deleted,omitempty"`
	// Refused is why the value must not be used, empty when it may: no node runs it.
	Refused string `json:"refused,omitempty"`
	// Invalid is a key that is none of an assignment: no node reads it.
	Invalid bool `json:"invalid,omitempty"`
	// Value is a manifest, an assignment document or an envelope; not to be changed.
	// A list does not have it.
	Value []byte `json:"value,omitempty"`
}

// Sync is how well a node knows what is assigned to it.
type Sync struct {
	// At is when it last knew everything; zero before the first time.
	At time.Time
	// Known are the families of which it has known everything since it began, those
	// that win first; each is read on its own.
	Known []string
	// Failed are the families that could not be read when that was tried last, in order; Err has why.
	Failed []string
	// Err is why it does not know now, nil when it does. That may pass.
	Err error
	// Stream is when the bucket was made, by which one that was created again is another.
	Stream time.Time
	// Kept are the keys, in order, that stay in force although the bucket does not
	// have them: it was created again, put back to an older state, or emptied. Putting
	// or deleting such a key settles it.
	Kept []string
	// Invalid are the keys of its families that are none of an assignment, in order,
	// as far as they were seen: what is put there is for nobody.
	Invalid []string
	// Unreadable are the keys, in order, whose newest value has headers that cannot be
	// read: it counts for nothing, and what is in force of the key stays so.
	Unreadable []string
	// Refused counts, since the agent started, answers of NATS that were not of what was
	// asked for, and messages that claim to come from elsewhere.
	Refused uint64
	// Denied is a subscription that NATS denied the connection, nil for none: what is put
	// may be noticed late, and requests may not arrive.
	Denied error
}

// Complete reports whether the entries are all there are: a manifest that is not among
// them is unassigned. While it is false nothing is.
func (s Sync) Complete() bool { return !s.At.IsZero() }

// Knows reports whether all entries of a family are known.
func (s Sync) Knows(family string) bool { return s.Complete() || slices.Contains(s.Known, family) }

// Memory is what a node keeps over a restart, so that it can tell what was taken
// away from it from what the bucket lost.
type Memory struct {
	// Entries are the keys and revisions that it knew, without their values.
	Entries map[string]Entry
	// Stream and Kept are those of Sync.
	Stream time.Time
	Kept   []string
}
