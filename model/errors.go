package model

import "errors"

// The sentinel errors of resources; wrapped with %w wherever they occur.
var (
	// ErrInvalidRef is a reference that is not type#name.
	ErrInvalidRef = errors.New("invalid resource reference")
	// ErrResourceInvalid is a resource whose properties are not valid; it never becomes valid by trying again.
	ErrResourceInvalid = errors.New("resource invalid")
	// ErrResourceNameRequired is a resource without a name.
	ErrResourceNameRequired = errors.New("resource name is required")
	// ErrUnknownType is a resource of a type that is not registered.
	ErrUnknownType = errors.New("unknown resource type")
	// ErrProviderNotFound is a provider asked for by a name that the type does not have.
	ErrProviderNotFound = errors.New("provider not found")
	// ErrNoSuitableProvider is a type of which no provider can manage this node.
	ErrNoSuitableProvider = errors.New("no suitable provider")
	// ErrDesiredStateFailed is a resource that is not in its desired state after it was applied.
	ErrDesiredStateFailed = errors.New("desired state not achieved")
)

// The sentinel errors of what is stored for a fleet; wrapped with %w too.
var (
	// ErrNotFound is an assignment, revision, bundle, object or key that is not there.
	ErrNotFound = errors.New("not found")
	// ErrNotPermitted reports an operation that the NATS server denies.
	ErrNotPermitted = errors.New("not permitted")
	// ErrUnusable is a stored value with invalid headers. It can be replaced or removed, but not used.
	ErrUnusable = errors.New("cannot be used")
	// ErrTooLarge is a value that is over what the server takes in one message. A
	// manifest of that size travels as a bundle.
	ErrTooLarge = errors.New("too large")
	// ErrUndeliverable is a report that the stream will never take, however often it
	// is tried, such as one over the server's limit.
	ErrUndeliverable = errors.New("report cannot be delivered")
)
