package archive

import (
	"context"
	"errors"

	hostarchive "github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

var (
	// ErrUnsupported is an unknown archive extension.
	ErrUnsupported = errors.New("archive type not supported")
	// ErrChecksum is content with another checksum than the wanted one.
	ErrChecksum = errors.New("the checksum does not match")
)

// ArchiveProvider fetches and unpacks archives.
type ArchiveProvider interface {
	resource.Provider
	// Status reads the archive and its creates path. The checksum of an archive
	// with ensure absent is not read.
	Status(ctx context.Context, env resource.Env, spec *Spec) (*State, error)
	// Download fetches the archive and places it atomically with attributes.
	// complete gets the checksum before it is placed; its error prevents that and
	// leaves the path unchanged.
	Download(ctx context.Context, env resource.Env, spec *Spec, a files.Attrs, complete func(checksum string) error) error
	// Extract unpacks the archive into its directory. It checks the whole archive before it
	// writes. The files are durable when it returns.
	Extract(ctx context.Context, env resource.Env, spec *Spec, content *hostarchive.Archive) error
}
