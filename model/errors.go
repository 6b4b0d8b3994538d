package model

import "errors"

// Sentinel errors of resources. Callers wrap them with %w.
var (
	// ErrInvalidRef means that a reference is not type#name.
	ErrInvalidRef = errors.New("invalid resource reference")
	// ErrResourceInvalid means that properties of a resource are not valid. It is permanent.
	ErrResourceInvalid = errors.New("resource invalid")
	// ErrResourceNameRequired means that a resource has no name.
	ErrResourceNameRequired = errors.New("resource name is required")
	// ErrUnknownType means that muster has no type of that name.
	ErrUnknownType = errors.New("unknown resource type")
	// ErrProviderNotFound means that the type has no provider of that name.
	ErrProviderNotFound = errors.New("provider not found")
	// ErrNoSuitableProvider means that no provider of the type can manage this node.
	ErrNoSuitableProvider = errors.New("no suitable provider")
	// ErrDesiredStateFailed means that a resource is not in its desired state after apply.
	ErrDesiredStateFailed = errors.New("desired state not achieved")
)

// Sentinel errors of stored values. Callers wrap them with %w.
var (
	// ErrNotFound means that an assignment, revision, bundle, object or key does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNotPermitted reports an operation that the NATS server denies.
	ErrNotPermitted = errors.New("not permitted")
	// ErrUnusable is a stored value with invalid headers. It can be replaced or removed, but not used.
	ErrUnusable = errors.New("cannot be used")
	// ErrTooLarge means that a value exceeds the server's message limit. A larger manifest is stored as a
	// bundle.
	ErrTooLarge = errors.New("too large")
	// ErrUndeliverable means that the stream will never accept a report, for example because of its size.
	ErrUndeliverable = errors.New("report cannot be delivered")
)
