package manifest

import (
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Secrets travel through expressions as plain text, because the language has
// no other. What comes of them is found by asking twice: once with the secrets
// and once with maskText in their place. Whatever differs depends on a secret,
// however it was cut, encoded or joined, and is one itself.
const maskText = model.Redacted

// reveal gives a tree with its secrets as plain text, and one with them masked.
// Both are the tree itself when it has none. found gets the secrets.
func reveal(v any, found *[]model.Secret) (plain, masked any) {
	before := len(*found)
	switch v := v.(type) {
	case model.Secret:
		*found = append(*found, v)
		return v.Reveal(), maskText
	case map[string]any:
		p, m := make(map[string]any, len(v)), make(map[string]any, len(v))
		for k, item := range v {
			p[k], m[k] = reveal(item, found)
		}
		plain, masked = p, m
	case []any:
		p, m := make([]any, len(v)), make([]any, len(v))
		for i, item := range v {
			p[i], m[i] = reveal(item, found)
		}
		plain, masked = p, m
	}
	if len(*found) == before {
		return v, v
	}

	return plain, masked
}

// markSecret marks every scalar of v that differs from its place in masked.
func markSecret(v *resource.Value, masked resource.Value) {
	switch {
	case v.Kind != masked.Kind, len(v.Items) != len(masked.Items), !slices.EqualFunc(v.Entries, masked.Entries, sameKey):
		markAll(v)
	case v.IsScalar() && v.Text != masked.Text:
		v.Secret = true
	}
	for i := range v.Items {
		if !v.Items[i].Secret && i < len(masked.Items) {
			markSecret(&v.Items[i], masked.Items[i])
		}
	}
	for i := range v.Entries {
		if !v.Entries[i].Value.Secret && i < len(masked.Entries) {
			markSecret(&v.Entries[i].Value, masked.Entries[i].Value)
		}
	}
}

func sameKey(a, b resource.Entry) bool { return a.Key == b.Key }

// markAll marks every scalar of v.
func markAll(v *resource.Value) {
	v.Secret = v.IsScalar()
	for i := range v.Items {
		markAll(&v.Items[i])
	}
	for i := range v.Entries {
		markAll(&v.Entries[i].Value)
	}
}
