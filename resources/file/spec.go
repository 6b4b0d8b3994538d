// Package file is the resource type for files and directories: existence,
// content, owner, group and mode.
package file

import (
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
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
	DropCapabilities bool  `json:"drop_capabilities,omitempty" jsonschema_description:"Remove the file capabilities (setcap) when the content changes; unset keeps them"`
	Replace          *bool `json:"replace,omitempty" jsonschema:"default=true" jsonschema_description:"With false: write the content only when the file is missing"`
	Backup           bool  `json:"backup,omitempty" jsonschema_description:"Keep the old content in the state directory before a change or removal, the last three of each path"`
	Parents          bool  `json:"parents,omitempty" jsonschema_description:"Create missing directories above the file"`
	SetUID           *bool `json:"setuid,omitempty" jsonschema_description:"The setuid bit; unset it is off on a file and unmanaged on a directory"`
	SetGID           *bool `json:"setgid,omitempty" jsonschema_description:"The setgid bit, like setuid; on a directory new entries get its group"`
	Sticky           *bool `json:"sticky,omitempty" jsonschema_description:"The sticky bit, like setuid; in a directory only owners remove their entries"`
	Force            bool  `json:"force,omitempty" jsonschema_description:"With absent: also remove a directory with content"`
}

func (s *Spec) managesContent() bool { return s.Content != nil || s.Source != "" }

func (s *Spec) replaces() bool { return s.Replace == nil || *s.Replace }

// writes reports whether the content is written where a path of a kind was found.
func (s *Spec) writes(found files.Kind) bool {
	return s.managesContent() && (s.replaces() || found == files.Absent)
}

func isSet(b *bool) bool { return b != nil && *b }

// givesRights reports whether a file runs with the rights of its owner or group.
func (s *Spec) givesRights() bool {
	return s.Ensure == model.EnsurePresent && (isSet(s.SetUID) || isSet(s.SetGID))
}

// specialProperties are the properties of the bits above the permissions.
func (s *Spec) specialProperties() []special {
	return []special{{"setuid", 0o4000, s.SetUID}, {"setgid", 0o2000, s.SetGID}, {"sticky", 0o1000, s.Sticky}}
}

type special struct {
	property string
	bit      uint32
	value    *bool
}

// describes reports whether the properties describe a desired state. A spec with only a name queries the
// current state.
func (s *Spec) describes() bool { return s.Owner != "" || s.Group != "" || s.Mode != "" }

// Validate reports every problem of the properties.
func (s *Spec) Validate() model.Problems {
	var out model.Problems
	resource.CheckPath(&out, "name", "file path", s.Name)
	if s.Content != nil && s.Source != "" {
		out.Property("source", "keep one of them", "`content` and `source` exclude each other")
	}
	if s.Ensure == EnsureDirectory {
		for _, property := range s.contentProperties() {
			out.Property(property, dropContent, "a directory has no `%s`", property)
		}
	}
	switch {
	case strings.ContainsRune(s.Source, 0):
		out.Property("source", "", "source must not contain a NUL byte")
	case !utf8.ValidString(s.Source):
		out.Property("source", "", "source must be UTF-8: %q", s.Source)
	}
	validateForce(&out, s)
	if s.MaxSize != 0 && s.Ensure == model.EnsurePresent && s.Source == "" {
		out.Property("max_size", "remove it, or set source", "`max_size` is only for a source")
	}
	resource.CheckValidator(&out, s.Validator)
	if s.Validator != "" && s.Ensure == model.EnsurePresent && !s.managesContent() {
		out.Property("validate", "set content or source", "`validate` has no content to validate")
	}
	if s.DropCapabilities && s.Ensure == model.EnsurePresent && !s.managesContent() {
		out.Property("drop_capabilities", "set content or source", "`drop_capabilities` requires managed content")
	}
	validateBackup(&out, s)
	if !s.replaces() && s.Ensure == model.EnsurePresent && !s.managesContent() {
		out.Property("replace", "set content or source", "`replace` requires managed content")
	}
	resource.CheckAccount(&out, s.Ensure, "owner", s.Owner)
	resource.CheckAccount(&out, s.Ensure, "group", s.Group)
	resource.CheckMode(&out, s.Ensure, s.Mode, "setuid", "setgid", "sticky")
	validateRights(&out, s)

	return out
}

// othersWrite are the permissions of group and others to write.
const othersWrite = 0o022

// validateRights reports what keeps a file from getting setuid or setgid: muster must know the content, and no
// other user may change it.
func validateRights(out *model.Problems, s *Spec) {
	if !s.givesRights() {
		return
	}
	mode, err := resource.ParseMode(s.Mode)
	for _, p := range s.specialProperties()[:2] {
		switch {
		case !isSet(p.value):
		case !s.managesContent() || !s.replaces():
			out.Property(p.property, "set content or source, without replace: false", "`%s` of a file requires managed content", p.property)
		case err == nil && mode&othersWrite != 0:
			out.Property(p.property, "write mode: "+strconv.Quote(resource.FormatMode(mode&^othersWrite)), "`%s` of a file requires a mode without write for group and others", p.property)
		}
	}
}

// Warnings returns properties without effect, and a mode that is probably decimal.
func (s *Spec) Warnings() model.Problems {
	var out model.Problems
	resource.WarnDecimalMode(&out, s.Ensure, s.Mode)
	if s.Ensure == model.EnsureAbsent {
		for _, property := range append(s.contentProperties(), s.attributeProperties()...) {
			out.Property(property, dropContent, "`%s` has no effect with ensure: absent", property)
		}
	}

	return out
}

const dropContent = "remove it, or use ensure: present"

func (s *Spec) contentProperties() []string {
	var set []string
	if s.Content != nil {
		set = append(set, propertyContent)
	}
	if s.Source != "" {
		set = append(set, "source")
	}
	if s.Validator != "" {
		set = append(set, "validate")
	}
	if s.MaxSize != 0 {
		set = append(set, "max_size")
	}
	if s.DropCapabilities {
		set = append(set, "drop_capabilities")
	}
	if s.Replace != nil {
		set = append(set, "replace")
	}

	return set
}

// attributeProperties returns the set properties, besides owner, group and mode, that files and directories have.
func (s *Spec) attributeProperties() []string {
	var set []string
	if s.Parents {
		set = append(set, "parents")
	}
	for _, p := range s.specialProperties() {
		if p.value != nil {
			set = append(set, p.property)
		}
	}

	return set
}

func validateBackup(out *model.Problems, s *Spec) {
	switch {
	case !s.Backup:
	case s.Ensure == EnsureDirectory:
		out.Property("backup", dropContent, "a directory has no `backup`")
	case s.Ensure == model.EnsurePresent && !s.managesContent():
		out.Property("backup", "set content or source", "`backup` requires managed content")
	case s.Force:
		out.Property("backup", "remove one of them", "`backup` keeps no directories, which `force` removes")
	}
}

func validateForce(out *model.Problems, s *Spec) {
	switch {
	case !s.Force:
	case s.Ensure != model.EnsureAbsent:
		out.Property("force", "remove it, or use ensure: absent", "`force` is only valid with ensure: absent")
	case filepath.Clean(s.Name) == "/":
		out.Property("force", "", "`force` cannot be used with the root directory")
	}
}

// searchable adds execute to each triad with read or write, like X of chmod, so one mode suits
// files and directories.
func searchable(mode uint32) uint32 {
	const read, write = 0o444, 0o222

	return mode | (mode&read)>>2 | (mode&write)>>1
}
