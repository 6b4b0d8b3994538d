// Package document reads documents in YAML or JSON, with the position of every value, and reports
// problems with their position and remedy.
package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

// MaxBytes is the default limit of the size of a document.
const MaxBytes = 16 << 20

const (
	// MaxValues is the maximum number of values of a document.
	MaxValues = 1_000_000
	// MaxDepth is the maximum nesting depth of a document.
	MaxDepth = 100
)

// Read reads a document in YAML or JSON. A name that ends in .json requires JSON. name is
// the file name in positions. An empty document is Null. With problems such as duplicate keys, the
// value contains the rest of the document, so that the caller can report more problems.
func Read(name string, data []byte, limit int64) (Value, model.Problems) {
	var none Value
	if int64(len(data)) > min(limit, math.MaxInt32) {
		return none, model.ProblemAt(model.Position{File: name}, "put large files beside the manifest in a bundle, and use `source`",
			"the document has %d bytes; the limit is %d", len(data), limit)
	}
	// Some editors write a byte order mark. Positions do not count it.
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	named := filepath.Ext(name) == ".json" && len(trimmed) > 0
	isJSON := (named || len(trimmed) > 0 && trimmed[0] == '{') && json.Valid(data)
	breaks, problem := checkText(name, data, isJSON)
	switch {
	case problem != nil:
		return none, model.Problems{*problem}
	case isJSON:
		return readJSON(name, data)
	case named:
		return none, brokenJSON(name, data)
	}
	v, problems, ok := readYAML(name, data, breaks)
	if !ok && looksLikeJSON.Match(data) {
		return none, brokenJSON(name, data)
	}

	return v, problems
}

// tooMany returns the problem of a document with more than MaxValues values.
func tooMany(name string) model.Problem {
	return model.Problem{
		Pos: model.Position{File: name}, Hint: "split it, or put large files beside the manifest in a bundle, and use `source`",
		Message: fmt.Sprintf("the document seems to contain more than %d values", MaxValues),
	}
}

// looksLikeJSON matches the start of a document that is meant as JSON.
var looksLikeJSON = regexp.MustCompile(`^\s*\{\s*"`)

// checkText returns the first character that a document must not contain, and reports whether the
// text contains any of lineBreaks. JSON may contain some control characters that YAML may not.
func checkText(name string, data []byte, isJSON bool) (breaks bool, problem *model.Problem) {
	for i := 0; i < len(data); {
		c := data[i]
		if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		r, size := utf8.DecodeRune(data[i:])
		message, hint := textProblem(data, i, r, size)
		if message != "" && (!isJSON || i == 0 || size == 1 && r == utf8.RuneError) {
			return breaks, &model.Problem{Pos: PositionAt(name, data, i), Message: message, Hint: hint}
		}
		breaks = breaks || strings.ContainsRune(lineBreaks, r)
		i += size
	}

	return breaks, nil
}

func textProblem(data []byte, i int, r rune, size int) (message, hint string) {
	switch {
	case i == 0 && (bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff})):
		return "the document is UTF-16, not UTF-8", "save it as UTF-8"
	case i == 0 && bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
		return "the document is a gzip archive, not text", "give a bundle as a path, obj:// or http(s)://"
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf("the byte %#02x is not valid UTF-8", data[i]), "save the document as UTF-8, or write bytes as `!!binary` with base64"
	case r < ' ' || r == 0x7f || (r > 0x7f && r < 0xa0 && r != 0x85) || r == 0xfffe || r == 0xffff:
		escape := `\x%02x`
		if r > 0xff {
			escape = `\u%04x`
		}
		return fmt.Sprintf("the control character %U is not allowed in a document", r), fmt.Sprintf(`write it as an escape in double quotes: "`+escape+`"`, r)
	default:
		return "", ""
	}
}

// PositionAt returns the line and column of a byte offset. Columns count characters.
func PositionAt(name string, data []byte, offset int) model.Position {
	before := data[:min(offset, len(data))]
	start := bytes.LastIndexByte(before, '\n') + 1

	return model.Position{File: name, Line: bytes.Count(before, []byte{'\n'}) + 1, Column: utf8.RuneCount(before[start:]) + 1}
}
