package fleet

import (
	"errors"
	"time"
)

// The sentinel errors that the interfaces of this package wrap.
var (
	// ErrNotFound is an assignment or revision that is not there.
	ErrNotFound = errors.New("not found")
	// ErrTooLarge is a value over what the server takes.
	ErrTooLarge = errors.New("larger than the server takes")
)

// Entry is one revision of an assignment.
type Entry struct {
	// Key is node.<node>.<name> or group.<group>.<name>.
	Key      string    `json:"key"`
	Revision uint64    `json:"revision"`
	Digest   string    `json:"digest,omitempty"`
	At       time.Time `json:"at,omitzero"`
	// Deleted is a revision that ended the assignment; it has no value.
	Deleted bool `json:"deleted,omitempty"`
	// Value is the bytes in the bucket; a list does not have them.
	Value []byte `json:"-"`
}
