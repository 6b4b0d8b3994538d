// Package file is the resource type for files and directories: existence,
// content, owner, group and mode.
package file

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
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

// maxMode is the largest mode, without setuid, setgid and sticky.
const maxMode = 0o777

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
	validateMode(&out, s)
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
	mode, err := parseMode(s.Mode)
	for _, p := range s.specialProperties()[:2] {
		switch {
		case !isSet(p.value):
		case !s.managesContent() || !s.replaces():
			out.Property(p.property, "set content or source, without replace: false", "`%s` of a file requires managed content", p.property)
		case err == nil && mode&othersWrite != 0:
			out.Property(p.property, "write mode: "+strconv.Quote(FormatMode(mode&^othersWrite)), "`%s` of a file requires a mode without write for group and others", p.property)
		}
	}
}

// Warnings returns properties without effect, and a mode that is probably decimal.
func (s *Spec) Warnings() model.Problems {
	var out model.Problems
	if mode, err := parseMode(s.Mode); err == nil && s.Ensure != model.EnsureAbsent && decimalMode(s.Mode) != "" {
		meant := decimalMode(s.Mode)
		out.Property("mode", fmt.Sprintf("write %q if you mean that, %q else", meant, FormatMode(mode)), "mode %q is octal, %s, and %s in decimal is %s", s.Mode, FormatMode(mode), s.Mode, meant)
	}
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

func validateMode(out *model.Problems, s *Spec) {
	if s.Mode == "" {
		if s.Ensure != model.EnsureAbsent {
			out.Property("mode", `for example mode: "0644"`, "`mode` is required unless ensure is absent")
		}
		return
	}
	if _, err := parseMode(s.Mode); err != nil {
		hint := `write permissions in octal, for example "0644"`
		if mode := decimalMode(s.Mode); mode != "" {
			hint = fmt.Sprintf("%s is %s in decimal: write %q", s.Mode, mode, mode)
		} else if meant := meantMode(s.Mode); meant != "" {
			hint = "write " + meant
		}
		out.Property("mode", hint, "%s", err)
	}
}

// symbolic matches a mode such as u=rwx,g=rx.
var symbolic = regexp.MustCompile(`^[ugoa]+=[rwx]*(,[ugoa]+=[rwx]*)*$`)

// meantMode returns the properties for a mode with special bits, or for a symbolic mode, and an empty string for
// other texts.
func meantMode(text string) string {
	if symbolic.MatchString(text) {
		return fmt.Sprintf("mode: %q", FormatMode(octal(text)))
	}
	mode, err := strconv.ParseUint(octalDigits(text), 8, 32)
	if err != nil || mode > allBits {
		return ""
	}
	meant := []string{fmt.Sprintf("mode: %q", FormatMode(uint32(mode)&maxMode))}
	for _, p := range new(Spec).specialProperties() {
		if uint32(mode)&p.bit != 0 {
			meant = append(meant, p.property+": true")
		}
	}

	return strings.Join(meant[:len(meant)-1], ", ") + " and " + meant[len(meant)-1]
}

// octal returns the permissions of a symbolic mode.
func octal(text string) (mode uint32) {
	shifts := map[rune]int{'u': 6, 'g': 3, 'o': 0}
	for clause := range strings.SplitSeq(strings.ReplaceAll(text, "a", "ugo"), ",") {
		who, what, _ := strings.Cut(clause, "=")
		bits := uint32(0)
		for _, r := range what {
			bits |= map[rune]uint32{'r': 4, 'w': 2, 'x': 1}[r]
		}
		for _, w := range who {
			mode = mode&^(7<<shifts[w]) | bits<<shifts[w]
		}
	}

	return mode
}

// decimalMode returns the octal mode for a common mode in decimal, such as 0644 for 420, and an empty
// string for other digits. Converted documents contain such numbers.
func decimalMode(text string) string {
	mode, err := strconv.ParseUint(text, 10, 32)
	common := []uint64{0o400, 0o440, 0o444, 0o500, 0o550, 0o555, 0o600, 0o640, 0o644, 0o660, 0o664, 0o666, 0o700, 0o750, 0o755, 0o770, 0o775, 0o777}
	if err != nil || text[0] == '0' || !slices.Contains(common, mode) {
		return ""
	}

	return FormatMode(uint32(mode))
}

// parseMode reads permissions in octal: 0644, 644, 0o644 or 0O644.
func parseMode(text string) (uint32, error) {
	mode, err := strconv.ParseUint(octalDigits(text), 8, 32)
	switch {
	case errors.Is(err, strconv.ErrRange) || mode > maxMode:
		return 0, fmt.Errorf("invalid mode %q: it exceeds 0777, setuid, setgid and sticky are not set by mode", text)
	case err != nil:
		return 0, fmt.Errorf("invalid mode %q: it is not octal", text)
	}

	return uint32(mode), nil
}

// octalDigits returns a mode without the prefix 0o.
func octalDigits(text string) string {
	if len(text) > 1 && text[0] == '0' && (text[1] == 'o' || text[1] == 'O') {
		return text[2:]
	}

	return text
}

// searchable adds execute to each triad with read or write, like X of chmod, so one mode suits
// files and directories.
func searchable(mode uint32) uint32 {
	const read, write = 0o444, 0o222

	return mode | (mode&read)>>2 | (mode&write)>>1
}

// FormatMode returns a mode with at least four octal digits.
func FormatMode(mode uint32) string {
	text := strconv.FormatUint(uint64(mode), 8)
	if len(text) < 4 {
		text = "0000"[:4-len(text)] + text
	}

	return text
}
