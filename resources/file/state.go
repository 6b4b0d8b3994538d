package file

import (
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// State is the observed state of a path. A symbolic link is present, or directory if it leads to a
// directory.
type State struct {
	model.CommonState
	Metadata *Metadata `json:"metadata,omitempty" jsonschema_description:"The file or directory at the path; omitted if the path does not exist"`

	// Entry is the path itself, even if it is a link.
	Entry files.Entry `json:"-"`
	// Target is the end of a link. Its kind is Absent for a dangling link. It is nil if the path is not a link.
	Target *files.Entry `json:"-"`
	// Unknown is why the path could not be inspected. Such a path is never changed.
	Unknown error `json:"-"`

	// Text is the content of the checksum, if the checksum was computed just now and the content is
	// short.
	Text *string `json:"-"`
	// Unreadable is why the content could not be read for its checksum.
	Unreadable error `json:"-"`
	// Unshown is the digest of a content that is compared but not shown, because the file does not
	// belong to the owner of its directory.
	Unshown string `json:"-"`

	want wanted
}

// Mark returns the path and its mark.
func (s *State) Mark() (path string, mark files.Mark) { return s.Name, s.Entry.Mark() }

// digest returns the digest of the content, empty for none.
func (s *State) digest() string {
	if s.Metadata == nil || s.Unshown != "" {
		return s.Unshown
	}

	return s.Metadata.Checksum
}

// hidden reports whether the existing content cannot be shown.
func (s *State) hidden() bool {
	return s.Unreadable != nil || s.Unshown != "" || s.Entry.Kind == files.File && s.digest() == ""
}

// Metadata describes an existing path.
type Metadata struct {
	Name     string         `json:"name" jsonschema_description:"The path"`
	Checksum string         `json:"checksum,omitempty" jsonschema_description:"Hex SHA-256 of a regular file's content, where it was read"`
	Owner    string         `json:"owner" jsonschema_description:"User name, or numeric id where it has no name"`
	Group    string         `json:"group" jsonschema_description:"Group name, or numeric id where it has no name"`
	Mode     string         `json:"mode" jsonschema_description:"Permissions and special bits in octal"`
	Provider string         `json:"provider"`
	MTime    time.Time      `json:"mtime" jsonschema_description:"Modification time"`
	Size     int64          `json:"size" jsonschema_description:"Bytes"`
	Extended map[string]any `json:"extended,omitempty" jsonschema_description:"Provider-specific metadata"`
}

// wanted is the desired state on this machine, with its obstacles. Plan needs it, but may not read the
// machine.
type wanted struct {
	attrs files.Attrs
	// digest and size describe the wanted content, if content is managed.
	digest string
	size   int64
	// obstacle is why the path cannot be created, replaced or removed.
	obstacle error
	// carried describes the extended attributes of a file that changes its content or owner.
	carried files.Carried
	// mask reports a link to /dev/null, which masks a unit in systemd.
	mask bool
	// notEmpty marks a directory with entries.
	notEmpty bool
	// before and after are the texts for a diff.
	before, after resource.Snippet
}
