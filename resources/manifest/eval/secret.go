package eval

import (
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// Reveal returns a tree with what text returns for each of its secrets: the tree
// itself when it has none.
func Reveal[T any](v any, text func(model.Secret) T) any {
	if !template.Holds(v) {
		return v
	}

	return template.Copy(v, func(v any) any {
		if secret, is := v.(model.Secret); is {
			return text(secret)
		}
		return v
	})
}

// cloned returns a copy of a tree, which a template may change.
func cloned(v any) any { return template.Copy(v, func(leaf any) any { return leaf }) }

// markAll marks every scalar of v as one that came of a secret.
func markAll(v *resource.Value) {
	v.Secret, v.Derived = v.IsScalar(), v.IsScalar()
	for i := range v.Items {
		markAll(&v.Items[i])
	}
	for i := range v.Entries {
		markAll(&v.Entries[i].Value)
	}
}
