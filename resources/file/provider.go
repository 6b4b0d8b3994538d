package file

import (
	"context"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// FileProvider manages paths on one platform.
type FileProvider interface {
	resource.Provider
	// Status reads a path without following a link. It reads the content of a regular file only for its
	// checksum, if reads is not nil and returns true. A path that cannot be inspected is a state with
	// Unknown, and unreadable content is a state with Unreadable; neither is an error.
	Status(ctx context.Context, env resource.Env, path string, reads func(files.Entry) bool) (*State, error)
	// Store atomically creates or replaces the regular file at path. It replaces a link and never follows
	// it. It does not store content that the validate command rejects.
	Store(ctx context.Context, env resource.Env, path string, c Content, a files.Attrs) error
	// SetAttributes changes owner, group and mode of a regular file. It refuses a link.
	SetAttributes(ctx context.Context, env resource.Env, path string, a files.Attrs) error
	// CreateDirectory makes a directory and its parents, or sets the attributes of
	// an existing one.
	CreateDirectory(ctx context.Context, env resource.Env, path string, a files.Attrs) error
	// Remove removes path, and a directory with entries only with force.
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
