package manifest

import (
	"context"

	"github.com/musterfleet/muster/resources/document"
)

// Object resolves a mapping of a document to plain values; nothing is an empty one.
// A value of the document is made and resolved at a time.
func (r *resolver) Object(ctx context.Context, n document.Node) map[string]any {
	for key := range n.Entries() {
		if r.mayHold(key.Text()) {
			// Keys may become the same, and are compared with their places.
			v, _ := r.Mapping(ctx, n.Value())
			return v.Plain().(map[string]any)
		}
	}
	out := make(map[string]any, n.Len())
	for key, value := range n.Entries() {
		out[key.Text()] = r.Plain(ctx, value)
	}

	return out
}

// Plain resolves a value of a document to a plain one.
func (r *resolver) Plain(ctx context.Context, n document.Node) any {
	switch n.Kind() {
	case document.Map:
		return r.Object(ctx, n)
	case document.List:
		out := make([]any, 0, n.Len())
		for item := range n.Items() {
			out = append(out, r.Plain(ctx, item))
		}
		return out
	default:
		v, _ := r.Value(ctx, n.Value())
		return v.Plain()
	}
}
