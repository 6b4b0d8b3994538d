package model

import "context"

// refKey is the key of WithRef.
type refKey struct{}

// WithRef returns a context in which log records are about a resource: a log with fields
// has one for it.
func WithRef(ctx context.Context, ref Ref) context.Context {
	return context.WithValue(ctx, refKey{}, ref)
}

// RefOf returns the resource of WithRef, and whether there is one.
func RefOf(ctx context.Context) (ref Ref, ok bool) {
	ref, ok = ctx.Value(refKey{}).(Ref)

	return ref, ok
}
