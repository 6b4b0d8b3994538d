package assign

import (
	"context"
	"errors"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// Bucket reads the bucket of assignments.
type Bucket interface {
	// List returns the current assignments of the families, of all without any.
	List(ctx context.Context, families ...string) ([]model.Entry, error)
	// Get returns the newest revision of a key, and History all its stored revisions, oldest first. The errors
	// wrap model.ErrNotFound.
	Get(ctx context.Context, key string) (model.Entry, error)
	History(ctx context.Context, key string) ([]model.Entry, error)
}

// NotFound is the text of an error that wraps model.ErrNotFound.
type NotFound string

// Error returns the text.
func (n NotFound) Error() string { return string(n) }

// Unwrap returns model.ErrNotFound.
func (NotFound) Unwrap() error { return model.ErrNotFound }

// IsKey reports whether a text is a key such as node.web01.motd, rather than a name such as motd.
func IsKey(text string) bool { return strings.Contains(text, ".") }

// NotAssigned returns an error for a name or key without an assignment, with a suggestion from all assignments.
func NotAssigned(nameOrKey string, all []model.Entry) error {
	what, known := nameOrKey, make([]string, len(all))
	if !IsKey(nameOrKey) {
		what = "manifest " + nameOrKey
	}
	for i, e := range all {
		if known[i] = e.Name; IsKey(nameOrKey) {
			known[i] = e.Key
		}
	}
	text := what + " is not assigned (see muster fleet ls)"
	if near := document.Nearest(nameOrKey, known); near != "" {
		text += ", did you mean " + near + "?"
	}

	return NotFound(text)
}

// Digests returns the digests of the stored revisions of a key, by revision.
func Digests(ctx context.Context, b Bucket, key string) (map[uint64]string, error) {
	all, err := b.History(ctx, key)
	if err != nil && !errors.Is(err, model.ErrNotFound) {
		return nil, err
	}
	out := map[uint64]string{}
	for _, e := range all {
		out[e.Revision] = e.Digest
	}

	return out, nil
}
