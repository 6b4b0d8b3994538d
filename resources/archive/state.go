package archive

import (
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
)

// State is the observed state of an archive.
type State struct {
	model.CommonState
	Metadata *Metadata `json:"metadata,omitempty" jsonschema_description:"The file at the path"`

	// Entry is the path itself, even if it is a link.
	Entry files.Entry `json:"-"`

	want wanted
	past record
	// outdated is the checksum of the unpacked archive if it is not the declared one, else empty.
	outdated string
}

// Metadata describes the archive file and its creates path.
type Metadata struct {
	Name          string    `json:"name" jsonschema_description:"The path"`
	Checksum      string    `json:"checksum,omitempty" jsonschema_description:"SHA-256 of the archive in hex, where it was read"`
	ArchiveExists bool      `json:"archive_exists" jsonschema_description:"Whether the archive exists"`
	CreatesExists bool      `json:"creates_exists" jsonschema_description:"Whether the path in creates exists"`
	Owner         string    `json:"owner,omitempty" jsonschema_description:"User name, or numeric id where it has no name"`
	Group         string    `json:"group,omitempty" jsonschema_description:"Group name, or numeric id where it has no name"`
	MTime         time.Time `json:"mtime,omitzero" jsonschema_description:"Modification time of the archive"`
	Size          int64     `json:"size,omitempty" jsonschema_description:"Bytes"`
	Provider      string    `json:"provider"`
}

// wanted is the desired state on this machine, with its obstacles. Plan needs it, but may not read the
// machine.
type wanted struct {
	attrs files.Attrs
	// obstacle prevents the download and the removal of the archive, target the unpacking.
	obstacle, target error
}
