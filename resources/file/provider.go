package file

import (
	"context"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// FileProvider manages paths on one platform.
type FileProvider interface {
	resource.Provider
	// Status reads a path without following a link; the content of a regular file
	// only for its checksum, and where reads is not nil and returns true. A path that may not be read is a state with Unknown,
	// unreadable content one with Unreadable, and neither is an error.
	Status(ctx context.Context, env resource.Env, path string, reads func(files.Entry) bool) (*State, error)
	// Store atomically creates or replaces the regular file at path. A link is
	// replaced, never followed. Content that its command refuses is not stored.
	Store(ctx context.Context, env resource.Env, path string, c Content, a files.Attrs) error
	// SetAttributes changes owner, group and mode of a regular file. A link is
	// refused.
	SetAttributes(ctx context.Context, env resource.Env, path string, a files.Attrs) error
	// CreateDirectory makes a directory and its parents, or sets the attributes of
	// an existing one.
	CreateDirectory(ctx context.Context, env resource.Env, path string, a files.Attrs) error
	// Remove removes path; a directory with entries only with force.
	Remove(ctx context.Context, env resource.Env, path string, force bool) error
}

// Content is the content of a file: the file Source if it is set, or else Text. At most Size bytes of Source
// are copied. Validate is the command that must accept the content; it may be empty. DropCapabilities
// removes the capabilities of the file.
type Content struct {
	Text     string
	Source   string
	Size     int64
	Validate string

	DropCapabilities bool
}
