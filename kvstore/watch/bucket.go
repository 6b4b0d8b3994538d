package watch

import (
	"strings"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// bucket is what is watched: a key-value bucket whose changes the server republishes.
type bucket struct {
	name string
	// values is what it holds, for people.
	values string
	// isKey reports whether a key is one that nodes read.
	isKey func(key string) bool
	// changed is the subject of the changes of a family, announced the key that one of them
	// is about.
	changed   func(family string) string
	announced func(subject string) (key string, ok bool)
	// isOptional is that a fleet may have no such bucket.
	isOptional bool
	// isMain is that this watch, of those on a connection, connects again where a subscription
	// is denied, and logs that answers were refused.
	isMain bool
	// inOrder reads announced keys in the order of their changes: a resume must not overtake an earlier pause.
	inOrder bool
}

// manifests is the bucket of assignments.
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

// control is the bucket of what operators write about nodes.
func control(n kvstore.Names) bucket {
	return bucket{
		name: n.Control(), values: "control documents", isKey: model.IsControlKey, isOptional: true, inOrder: true,
		changed:   func(family string) string { return n.ControlChanged(family, "*") },
		announced: n.ControlKey,
	}
}

// stream returns the stream behind it.
func (b bucket) stream() string { return kvstore.KVStream(b.name) }

// subject returns the subject of a key, which may be a wildcard, and key the inverse.
func (b bucket) subject(key string) string { return kvstore.KVSubject(b.name, key) }
func (b bucket) key(subject string) string { return strings.TrimPrefix(subject, b.subject("")) }
