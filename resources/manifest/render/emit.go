package render

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/musterfleet/muster/resources/resource"
)

// emitter writes values as YAML. It has few forms, so that whatever it writes
// reads back byte for byte: plain words, literal blocks and double quotes.
type emitter struct{ out *bytes.Buffer }

// Value writes a mapping or list as a block at an indentation.
func (e *emitter) value(v resource.Value, indent int) {
	pad := strings.Repeat(" ", indent)
	for _, item := range v.Items {
		e.out.WriteString(pad + "-")
		e.below(item, indent, true)
	}
	for _, entry := range v.Entries {
		key := scalarKey(entry.Key)
		if len(key) > maxKeyLength {
			key = "? " + key + "\n" + pad
		}
		e.out.WriteString(pad + key + ":")
		e.below(entry.Value, indent, false)
	}
}

// below writes what follows a dash or colon.
func (e *emitter) below(v resource.Value, indent int, item bool) {
	switch {
	case v.Kind == resource.Null:
		e.out.WriteString("\n")
	case v.Kind == resource.List && len(v.Items) == 0:
		e.out.WriteString(" []\n")
	case v.Kind == resource.Map && len(v.Entries) == 0:
		e.out.WriteString(" {}\n")
	case item && v.Kind == resource.Map:
		// The first key follows the dash on its line.
		var nested bytes.Buffer
		(&emitter{out: &nested}).value(v, indent+2)
		e.out.WriteString(" " + nested.String()[indent+2:])
	case v.Kind == resource.List || v.Kind == resource.Map:
		e.out.WriteString("\n")
		e.value(v, indent+2)
	case v.Kind == resource.String && isLiteral(v.Text):
		e.literal(v.Text, indent+2)
	default:
		e.out.WriteString(" " + scalarText(v) + "\n")
	}
}

// Literal writes a text of several lines as a literal block.
func (e *emitter) literal(s string, indent int) {
	body := strings.TrimRight(s, "\n")
	switch len(s) - len(body) {
	case 0:
		e.out.WriteString(" |-\n")
	case 1:
		e.out.WriteString(" |\n")
	default:
		e.out.WriteString(" |+\n")
	}
	pad := strings.Repeat(" ", indent)
	for line := range strings.Lines(s) {
		if line != "\n" {
			e.out.WriteString(pad)
		}
		e.out.WriteString(line)
	}
	if body == s {
		e.out.WriteString("\n")
	}
}

// isLiteral says that a literal block keeps a text as it is.
func isLiteral(s string) bool {
	if !strings.Contains(s, "\n") || strings.TrimSpace(s) == "" || strings.ContainsAny(s[:1], " \t\n") || !utf8.ValidString(s) {
		return false
	}

	return strings.IndexFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && !isPlainRune(r) }) < 0
}

func isPlainRune(r rune) bool {
	return r == ' ' || unicode.IsGraphic(r) && r != '\ufeff'
}

var plainWord = regexp.MustCompile(`^[A-Za-z/_][A-Za-z0-9/_.+-]*( [A-Za-z0-9/_.+-]+)*$`)

// isWord says that a text may stand without quotes.
func isWord(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		return false
	default:
		return plainWord.MatchString(s)
	}
}

var plainNumber = regexp.MustCompile(`^[A-Za-z0-9+._-]+$`)

func scalarText(v resource.Value) string {
	if v.Kind != resource.String && plainNumber.MatchString(v.Text) || isWord(v.Text) {
		return v.Text
	}
	if !utf8.ValidString(v.Text) {
		return "!!binary " + strconv.Quote(base64.StdEncoding.EncodeToString([]byte(v.Text)))
	}

	return doubleQuoted(v.Text)
}

func scalarKey(s string) string {
	if isWord(s) {
		return s
	}

	return doubleQuoted(s)
}

func doubleQuoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case isPlainRune(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')

	return b.String()
}
