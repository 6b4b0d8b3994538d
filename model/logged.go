package model

import "context"

// refKey is the key of WithRef.
type refKey struct{}

// WithRef returns a context for log records about a resource. Logs with fields add the resource.
func WithRef(ctx context.Context, ref Ref) context.Context {
	return context.WithValue(ctx, refKey{}, ref)
}

// RefOf returns the resource of a context, and whether it has one.
func RefOf(ctx context.Context) (ref Ref, ok bool) {
	ref, ok = ctx.Value(refKey{}).(Ref)

	return ref, ok
}
