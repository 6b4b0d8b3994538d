package file

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

// maxMode is the largest mode: the permission bits, without setuid, setgid and sticky.
const maxMode = 0o777

// Validate reports every problem of the properties.
func (s *Spec) Validate() model.Problems {
	var out model.Problems
	validatePath(&out, s.Name)
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
	validateAccount(&out, s, "owner", s.Owner)
	validateAccount(&out, s, "group", s.Group)
	validateMode(&out, s)

	return out
}

// Warnings gives what is allowed but has no effect.
func (s *Spec) Warnings() model.Problems {
	var out model.Problems
	if s.Ensure == model.EnsureAbsent {
		for _, property := range s.contentProperties() {
			out.Property(property, dropContent, "`%s` has no effect with ensure: absent", property)
		}
	}

	return out
}

// dropContent is the remedy for content where there can be none.
const dropContent = "remove it, or use ensure: present"

// contentProperties gives those properties that say what is in the file.
func (s *Spec) contentProperties() []string {
	var set []string
	if s.Content != nil {
		set = append(set, propertyContent)
	}
	if s.Source != "" {
		set = append(set, "source")
	}

	return set
}

func validatePath(out *model.Problems, path string) {
	if !filepath.IsAbs(path) {
		out.Property("name", "begin it with /, for example /etc/motd", "file path must be absolute: %q", path)
	}
	if clean := filepath.Clean(path); clean != path {
		out.Property("name", "write it as "+clean, "file path must be clean, without . or .. or a / too many: %q", path)
	}
	switch {
	case strings.ContainsRune(path, 0):
		out.Property("name", "", "file path must not contain a NUL byte")
	case strings.ContainsFunc(path, unicode.IsControl):
		out.Property("name", "", "file path must not contain control characters: %q", path)
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

func validateAccount(out *model.Problems, s *Spec, property, value string) {
	switch {
	case value == "" && s.Ensure == model.EnsureAbsent:
	case strings.TrimSpace(value) == "":
		out.Property(property, "for example "+property+": root", "`%s` is required unless ensure is absent", property)
	case !accountNumberInRange(value):
		out.Property(property, fmt.Sprintf("numbers go up to %d", uint32(math.MaxUint32-1)), "invalid %s %q", property, value)
	}
}

// accountNumberInRange refuses numbers that the system has no account for; the
// largest of 32 bits means "leave it as it is" to chown(2).
func accountNumberInRange(value string) bool {
	if strings.Trim(value, "0123456789") != "" {
		return true
	}
	n, err := strconv.ParseUint(value, 10, 32)

	return err == nil && n < math.MaxUint32
}

func validateMode(out *model.Problems, s *Spec) {
	if s.Mode == "" {
		if s.Ensure != model.EnsureAbsent {
			out.Property("mode", `for example mode: "0644"`, "`mode` is required unless ensure is absent")
		}
		return
	}
	if _, err := parseMode(s.Mode); err != nil {
		out.Property("mode", `write permissions in octal, for example "0644"`, "%s", err)
	}
}

// parseMode reads permissions in octal: 0644, 644, 0o644 or 0O644.
func parseMode(text string) (uint32, error) {
	digits := text
	if len(text) > 1 && text[0] == '0' && (text[1] == 'o' || text[1] == 'O') {
		digits = text[2:]
	}
	mode, err := strconv.ParseUint(digits, 8, 32)
	switch {
	case errors.Is(err, strconv.ErrRange) || mode > maxMode:
		return 0, fmt.Errorf("invalid mode %q: it exceeds 0777, setuid, setgid and sticky are not set by mode", text)
	case err != nil:
		return 0, fmt.Errorf("invalid mode %q: it is not octal", text)
	}

	return uint32(mode), nil
}

// FormatMode gives a mode with at least four octal digits.
func FormatMode(mode uint32) string {
	text := strconv.FormatUint(uint64(mode), 8)
	if len(text) < 4 {
		text = "0000"[:4-len(text)] + text
	}

	return text
}
