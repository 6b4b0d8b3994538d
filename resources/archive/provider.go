package archive

import (
	"context"
	"errors"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// ErrUnsupported is a file whose extension is none of an archive that is known.
var ErrUnsupported = errors.New("archive type not supported")

// ArchiveProvider is a way of fetching and unpacking archives.
type ArchiveProvider interface {
	resource.Provider
	// Status looks at the archive and at what it creates. The checksum of an
	// archive that is to be absent is not read.
	Status(ctx context.Context, env resource.Env, spec *Spec) (*State, error)
	// Download fetches the archive and places it, all at once, with attributes.
	// Complete gets the checksum of what arrived, before it is placed; its error
	// keeps that from happening. What does not have the checksum asked for is an
	// error and leaves the place as it was.
	Download(ctx context.Context, env resource.Env, spec *Spec, a files.Attrs, complete func(checksum string) error) error
	// Extract unpacks the archive into its directory. What is not safe is refused
	// before anything is written. When it returns, what it wrote is durable.
	Extract(ctx context.Context, env resource.Env, spec *Spec) error
}
