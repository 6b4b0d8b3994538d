package assign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// Revision is a revision of an assignment with its changes.
type Revision struct {
	model.Entry
	// Bundle reports whether it assigns a bundle, whose files are not compared.
	Bundle bool `json:"bundle,omitempty"`
	// Noop reports whether nodes only report changes.
	Noop bool `json:"noop,omitempty"`
	// Lines are the added and removed lines since the previous assignment, nil if unknown.
	Lines *Lines `json:"lines,omitempty"`
	// SameAs is the last earlier revision with the same content, as after a rollback; zero for none.
	SameAs uint64 `json:"same_as,omitempty"`
	// Unchanged reports whether it has the content of the revision before.
	Unchanged bool `json:"unchanged,omitempty"`
	Ran       Ran  `json:"ran"`
}

// Lines are numbers of added and removed lines.
type Lines struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// String returns the numbers in the form of a diff: +3 -1.
func (l *Lines) String() string {
	if l == nil {
		return "-"
	}

	return fmt.Sprintf("+%d -%d", l.Added, l.Removed)
}

// Revisions converts entries of any number of keys to revisions. The entries of each key are in order. The
// zero value is ready.
type Revisions struct{ keys map[string]*key }

// key is the state of a key.
type key struct {
	// content is the last assigned content, nil if unknown.
	content *Content
	last    string
	seen    map[string]uint64
}

// errBundle means that files of bundles are not read.
var errBundle = errors.New("bundles are not read")

func noBundle(context.Context, string) (io.ReadCloser, error) { return nil, errBundle }

// Add returns the revision of an entry, without its value.
func (r *Revisions) Add(ctx context.Context, e model.Entry) Revision {
	out := Revision{Entry: e}
	out.Value = nil
	k := r.keys[e.Key]
	if e.Deleted || e.Refused != "" {
		if k != nil {
			k.last = ""
		}
		return out
	}
	if k == nil {
		k = &key{seen: map[string]uint64{}}
		if r.keys == nil {
			r.keys = map[string]*key{}
		}
		r.keys[e.Key] = k
	}
	if v, problems := document.DecodeAssigned(e.Key, e.Value); problems == nil {
		out.Bundle, out.Noop = v.Bundle != "", v.Noop
	}
	id := Identity(e.Key, e.Value)
	out.Unchanged = id != "" && id == k.last
	if !out.Unchanged && id != "" {
		out.SameAs = k.seen[id]
	}
	k.last, k.seen[id] = id, e.Revision
	content, err := ReadContent(ctx, e, noBundle)
	if err != nil {
		k.content = nil
		return out
	}
	if k.content != nil {
		added, removed := k.content.Lines(content)
		out.Lines = &Lines{added, removed}
	}
	k.content = &content

	return out
}

// Describe describes a revision in a few words, empty for an ordinary one.
func (r Revision) Describe() string {
	var words []string
	switch {
	case r.Refused != "":
		return "cannot be used: " + r.Refused
	case r.Unchanged:
		words = append(words, "unchanged")
	case r.SameAs != 0:
		words = append(words, fmt.Sprintf("the same as revision %d", r.SameAs))
	}
	if r.Bundle {
		words = append(words, "bundle")
	}
	if r.Noop {
		words = append(words, "noop")
	}

	return strings.Join(words, ", ")
}

// Change is the effect of a revision: assigned or removed.
func (r Revision) Change() Kind {
	if r.Deleted {
		return KindRemoved
	}

	return KindAssigned
}

// Since returns the last revisions since a time, at most a number; zero means no limit. It also returns the
// number of omitted revisions since that time.
func Since[T any](all []T, at func(T) time.Time, since time.Time, last int) (out []T, more int) {
	for _, one := range all {
		if since.IsZero() || !at(one).Before(since) {
			out = append(out, one)
		}
	}
	if more = len(out) - last; last > 0 && more > 0 {
		return out[more:], more
	}

	return out, 0
}
