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
	// ErrChecksum means that the content does not have the wanted checksum.
	ErrChecksum = errors.New("the checksum does not match")
)

// ArchiveProvider fetches and unpacks archives.
type ArchiveProvider interface {
	resource.Provider
	// Status reads the archive and its creates path. With ensure absent it does not read the
	// checksum.
	Status(ctx context.Context, env resource.Env, spec *Spec) (*State, error)
	// Download fetches the archive and places it atomically, with attributes. Before that it calls
	// complete with the checksum; an error of complete leaves the path unchanged.
	Download(ctx context.Context, env resource.Env, spec *Spec, a files.Attrs, complete func(checksum string) error) error
	// Extract unpacks the archive into its directory. It checks the whole archive before it
	// writes. The files are durable when it returns.
	Extract(ctx context.Context, env resource.Env, spec *Spec, content *hostarchive.Archive) error
}
