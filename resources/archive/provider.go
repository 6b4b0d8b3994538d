package archive

import (
	"context"
	"errors"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// ErrUnsupported is an unknown archive extension.
var ErrUnsupported = errors.New("archive type not supported")

// ArchiveProvider fetches and unpacks archives.
type ArchiveProvider interface {
	resource.Provider
	// Status reads the archive and its creates path. The checksum of an archive
	// with ensure absent is not read.
	Status(ctx context.Context, env resource.Env, spec *Spec) (*State, error)
	// Download fetches the archive and places it atomically with attributes.
	// complete gets the checksum before it is placed; its error prevents that.
	// Another checksum than the wanted one is an error and leaves the path
	// unchanged.
	Download(ctx context.Context, env resource.Env, spec *Spec, a files.Attrs, complete func(checksum string) error) error
	// Extract unpacks the archive into its directory. An unsafe archive is refused
	// before anything is written. What it wrote is durable when it returns.
	Extract(ctx context.Context, env resource.Env, spec *Spec) error
}
