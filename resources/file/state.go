package file

import (
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// State is what the machine says of a path. A symbolic link is present, and
// directory when it leads to one.
type State struct {
	model.CommonState
	Metadata *Metadata `json:"metadata,omitempty" jsonschema_description:"What stands at the path; absent when nothing does"`

	// Entry is what stands at the path itself; a link is not followed.
	Entry files.Entry `json:"-"`
	// Target is what a link leads to; Absent for one that leads nowhere.
	Target files.Entry `json:"-"`
	// Unknown is why the machine could not be asked. Such a path is never touched.
	Unknown error `json:"-"`

	// Unreadable is why the content of a file could not be read for its checksum.
	Unreadable error `json:"-"`

	want wanted
}

// Metadata describes what stands at a path.
type Metadata struct {
	Name     string         `json:"name" jsonschema_description:"The path"`
	Checksum string         `json:"checksum,omitempty" jsonschema_description:"Hex SHA-256 of a regular file's content, where it was read"`
	Owner    string         `json:"owner" jsonschema_description:"Name of the user, or the number of one without a name"`
	Group    string         `json:"group" jsonschema_description:"Name of the group, or the number of one without a name"`
	Mode     string         `json:"mode" jsonschema_description:"Permissions and special bits in octal"`
	Provider string         `json:"provider"`
	MTime    time.Time      `json:"mtime" jsonschema_description:"When the content was last changed"`
	Size     int64          `json:"size" jsonschema_description:"Bytes"`
	Extended map[string]any `json:"extended,omitempty" jsonschema_description:"What only the provider knows"`
}

// wanted is what the properties come to on this machine, and what stands in
// their way: all that Plan needs and may not ask for itself.
type wanted struct {
	attrs files.Attrs
	// digest and size are those of the content asked for, where content is managed.
	digest string
	size   int64
	// obstacle is why nothing can be made, replaced or removed at the path.
	obstacle error
	// notEmpty is set on a directory that has entries.
	notEmpty bool
	// before and after are the texts for a diff.
	before, after resource.Snippet
}
