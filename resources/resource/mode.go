package resource

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
)

// MaxMode is the largest mode, without setuid, setgid and sticky.
const MaxMode = 0o777

// ParseMode reads permissions in octal: 0644, 644, 0o644 or 0O644.
func ParseMode(text string) (uint32, error) {
	mode, err := strconv.ParseUint(octalDigits(text), 8, 32)
	switch {
	case errors.Is(err, strconv.ErrRange) || mode > MaxMode:
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

// FormatMode returns a mode with at least four octal digits.
func FormatMode(mode uint32) string {
	text := strconv.FormatUint(uint64(mode), 8)
	if len(text) < 4 {
		text = "0000"[:4-len(text)] + text
	}

	return text
}

// CheckMode reports a missing mode, unless ensure is absent, and an invalid one. special are the properties of
// the bits above the permissions, the highest first, if a type has them.
func CheckMode(out *model.Problems, ensure, text string, special ...string) {
	if text == "" {
		if ensure != model.EnsureAbsent {
			out.Property("mode", `for example mode: "0644"`, "`mode` is required unless ensure is absent")
		}
		return
	}
	if _, err := ParseMode(text); err != nil {
		hint := `write permissions in octal, for example "0644"`
		if mode := decimalMode(text); mode != "" {
			hint = fmt.Sprintf("%s is %s in decimal: write %q", text, mode, mode)
		} else if meant := meantMode(text, special); meant != "" {
			hint = "write " + meant
		}
		out.Property("mode", hint, "%s", err)
	}
}

// isSymbolic reports whether a mode is one such as u=rwx,g=rx.
func isSymbolic(text string) bool {
	for clause := range strings.SplitSeq(text, ",") {
		who, what, is := strings.Cut(clause, "=")
		if !is || who == "" || strings.Trim(who, "ugoa") != "" || strings.Trim(what, "rwx") != "" {
			return false
		}
	}

	return true
}

// specialBits are setuid, setgid and sticky.
const specialBits = 0o7000

// meantMode returns the properties for a mode with special bits, or for a symbolic mode, and an empty string for
// other texts.
func meantMode(text string, special []string) string {
	if isSymbolic(text) {
		return fmt.Sprintf("mode: %q", FormatMode(octal(text)))
	}
	mode, err := strconv.ParseUint(octalDigits(text), 8, 32)
	if err != nil || mode > specialBits|MaxMode {
		return ""
	}
	meant := []string{fmt.Sprintf("mode: %q", FormatMode(uint32(mode)&MaxMode))}
	for i, property := range special {
		if mode&(0o4000>>i) != 0 {
			meant = append(meant, property+": true")
		}
	}
	if len(meant) == 1 {
		return meant[0]
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

// WarnDecimalMode reports a valid mode that is probably decimal.
func WarnDecimalMode(out *model.Problems, ensure, text string) {
	mode, err := ParseMode(text)
	if meant := decimalMode(text); err == nil && ensure != model.EnsureAbsent && meant != "" {
		out.Property("mode", fmt.Sprintf("write %q if you mean that, %q else", meant, FormatMode(mode)), "mode %q is octal, %s, and %s in decimal is %s", text, FormatMode(mode), text, meant)
	}
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
