package file

import (
	"context"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// FileProvider does with a path what a platform needs.
type FileProvider interface {
	resource.Provider
	// Status looks at a path, without following a link; the content of a regular
	// file is read only when its checksum is asked for. A path that may not be
	// looked at is no error but a state with Unknown, content that may not be read
	// one with Unreadable.
	Status(ctx context.Context, env resource.Env, path string, checksum bool) (*State, error)
	// Store creates or replaces the regular file at path with content and
	// attributes, all at once. A link is replaced, never followed.
	Store(ctx context.Context, env resource.Env, path string, c Content, a files.Attrs) error
	// SetAttributes changes owner, group and mode of a regular file and nothing
	// else. A link is refused.
	SetAttributes(ctx context.Context, env resource.Env, path string, a files.Attrs) error
	// CreateDirectory makes a directory and its parents, or gives the one that is
	// there its attributes.
	CreateDirectory(ctx context.Context, env resource.Env, path string, a files.Attrs) error
	// Remove removes whatever stands at path; a directory that is not empty only with force.
	Remove(ctx context.Context, env resource.Env, path string, force bool) error
}

// Content is what a file is to hold: the file Source when it is set, else Text.
type Content struct {
	Text   string
	Source string
}
