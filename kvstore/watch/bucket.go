package watch

import (
	"strings"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// bucket describes the watched key-value bucket. The server republishes the headers of its changes.
type bucket struct {
	name string
	// values names the values of the bucket in log messages.
	values string
	// isKey reports whether nodes read a key.
	isKey func(key string) bool
	// changed returns the subject for the changes of a family. announced returns the key of such a
	// subject.
	changed   func(family string) string
	announced func(subject string) (key string, ok bool)
	// isOptional reports whether a fleet works without the bucket.
	isOptional bool
	// isMain marks the one watch of a connection that reconnects after a denied subscription and logs
	// refused answers.
	isMain bool
	// inOrder reads announced keys in the order of their changes: a resume must not overtake an
	// earlier pause.
	inOrder bool
}

// manifests returns the bucket of assignments.
func manifests(n kvstore.Names) bucket {
	return bucket{
		name: n.Manifests(), values: "assignments", isMain: true,
		isKey:   func(key string) bool { return !kvstore.IsInvalidKey(key) },
		changed: func(family string) string { return n.Changed(model.Key(family, ">")) },
		announced: func(subject string) (string, bool) {
			if _, is := n.ControlKey(subject); is {
				return "", false
			}
			return n.ChangedKey(subject)
		},
	}
}

// control returns the bucket of control documents.
func control(n kvstore.Names) bucket {
	return bucket{
		name: n.Control(), values: "control documents", isKey: model.IsControlKey, isOptional: true, inOrder: true,
		changed:   func(family string) string { return n.ControlChanged(family, "*") },
		announced: n.ControlKey,
	}
}

// stream returns the stream behind the bucket.
func (b bucket) stream() string { return kvstore.KVStream(b.name) }

// subject returns the subject of a key, which may be a wildcard. key is the inverse.
func (b bucket) subject(key string) string { return kvstore.KVSubject(b.name, key) }
func (b bucket) key(subject string) string { return strings.TrimPrefix(subject, b.subject("")) }
