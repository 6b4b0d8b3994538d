// Package file is the resource type for files and directories: existence,
// content, owner, group and mode.
package file

import (
	"github.com/musterfleet/muster/model"
)

// EnsureDirectory is the ensure value for a directory.
const EnsureDirectory = "directory"

// Spec are the properties of a file.
type Spec struct {
	model.Common
	// Content is nil for unmanaged content; an empty text means an empty file.
	Content *string `json:"content,omitempty" alias:"contents" sensitive:"true" jsonschema_description:"Content of the file; \"\" is an empty file, unset leaves the content alone"`
	Source  string  `json:"source,omitempty" filled:"true" jsonschema_description:"A file on this node to copy; a relative one is taken from the manifest's directory"`
	// MaxSize limits the source. Zero limits only a source that other users can write.
	MaxSize model.Size `json:"max_size,omitempty" jsonschema_description:"The most that a source may have: a number of bytes, or with a unit as in 500MB and 10GiB; unset it is 10GiB for a source that others than root and the user who runs muster may write to"`
	Owner   string     `json:"owner,omitempty" jsonschema_description:"Owner, name or numeric id; required except with absent"`
	Group   string     `json:"group,omitempty" jsonschema_description:"Group, name or numeric id; required except with absent"`
	Mode    string     `json:"mode,omitempty" flagdefault:"0644" jsonschema_description:"Permissions in octal: 0644, 644 or 0o644; a directory also gets execute where it has read or write; required except with absent"`
	// Validator is only for managed content.
	Validator string `json:"validate,omitempty" line:"any" filled:"true" sensitive:"true" jsonschema_description:"A command that must accept new content before it takes its place, with {} for the path of the new file: visudo -cf {}"`
	// DropCapabilities requires managed content.
	DropCapabilities bool `json:"drop_capabilities,omitempty" jsonschema_description:"Remove the file capabilities (setcap) when the content changes; unset keeps them"`
	Force            bool `json:"force,omitempty" jsonschema_description:"With absent: also remove a directory with content"`
}

// managesContent reports whether content is managed, and not only attributes.
func (s *Spec) managesContent() bool { return s.Content != nil || s.Source != "" }

// describes reports whether the properties describe a desired state. A spec with only a name queries the
// current state.
func (s *Spec) describes() bool { return s.Owner != "" || s.Group != "" || s.Mode != "" }
