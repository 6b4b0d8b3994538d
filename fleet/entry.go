package fleet

import "time"

// Entry is one revision of an assignment.
type Entry struct {
	// Key is node.<node>.<name> or group.<group>.<name>.
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
	// Digest is that of what runs: of the manifest or the bundle.
	Digest string    `json:"digest,omitempty"`
	At     time.Time `json:"at,omitzero"`
	// Deleted is a revision that ended the assignment; it has no value.
	Deleted bool `json:"deleted,omitempty"`
	// Invalid is a key that is none of an assignment: what stands there is for nobody.
	Invalid bool `json:"invalid,omitempty"`
	// Value is the bytes in the bucket; a list does not have them.
	Value []byte `json:"-"`
}
