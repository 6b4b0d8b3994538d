package document

import (
	"bytes"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
)

// syntaxProblem returns an error of the parser with its position. The parser reports only a line,
// often the line of an enclosing element. So the document is parsed again byte by byte: the parser
// fails at the last byte that it requests.
func syntaxProblem(name string, data []byte, err error) model.Problem {
	line, message := parserLine(err)
	read := data[:readUntilError(data)]
	offset := max(len(bytes.TrimRight(read, " \t\r\n"))-1, 0)
	at := PositionAt(name, data, offset)
	switch {
	case strings.HasPrefix(message, "unknown anchor"):
		if i := strings.Index(string(data), "*"+quoted(message)); i >= 0 {
			at = PositionAt(name, data, i)
		}
		return model.Problem{Pos: at, Message: "unknown alias `*" + quoted(message) + "`", Hint: "name it before with `&" + quoted(message) + "`, or quote a text that begins with `*`"}
	case strings.Contains(message, "unexpected end of stream"), strings.Contains(message, "unexpected document indicator"):
		at = lineStart(name, data, max(line, 1))
		return model.Problem{Pos: at, Message: "the quote that is opened here is never closed", Hint: "close it, or put the text into a block: `key: |`"}
	case message == "mapping values are not allowed in this context":
		if i := bytes.LastIndexByte(data[:offset], ':'); i >= 0 {
			at = PositionAt(name, data, i)
		}
		return model.Problem{Pos: at, Message: "a `:` is not allowed here", Hint: "quote the text that holds it, or check the indentation"}
	case strings.Contains(message, "tab character"):
		at = PositionAt(name, data, max(bytes.LastIndexByte(read, '\t'), 0))
		return model.Problem{Pos: at, Message: "a tab cannot indent", Hint: "use spaces; put a text that begins with a tab in double quotes: `\"\\t…\"`"}
	case message == "found incompatible YAML document":
		if i := bytes.Index(data, []byte("%YAML")); i >= 0 {
			at = PositionAt(name, data, i)
		}
		return model.Problem{Pos: at, Message: "this version of YAML is not known", Hint: "write `%YAML 1.2`, or leave the line out"}
	case message == "could not find expected ':'" && line > 0:
		at.Line = line
	}
	at = lineStart(name, data, at.Line)
	text := lineText(data, at.Line)
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	if tab := strings.IndexByte(indent, '\t'); tab >= 0 {
		at.Column = tab + 1
		return model.Problem{Pos: at, Message: "a tab cannot indent", Hint: "use spaces"}
	}

	return model.Problem{Pos: at, Message: "invalid YAML: " + message, Hint: syntaxHint(message)}
}

func syntaxHint(message string) string {
	switch {
	case strings.Contains(message, "cannot start any token"):
		return "quote text that begins with `@`, a backtick or `%`; indent with spaces"
	case strings.Contains(message, "did not find expected key"), strings.Contains(message, "did not find expected '-' indicator"), strings.Contains(message, "could not find expected ':'"):
		return "check the indentation of this line and the one before, and that a key ends with `: `"
	case strings.Contains(message, "did not find expected ',' or"), strings.Contains(message, "did not find expected node content"):
		return "a brace or bracket before this place is not closed; quote an expression that begins with a brace"
	default:
		return ""
	}
}

func quoted(message string) string {
	_, rest, _ := strings.Cut(message, "'")
	word, _, _ := strings.Cut(rest, "'")

	return word
}

type byteReader struct{ *bytes.Reader }

// Read reads one byte.
func (r byteReader) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }

// readUntilError returns the number of bytes that the parser requested before it failed.
func readUntilError(data []byte) int {
	r := byteReader{bytes.NewReader(data)}
	dec := yaml.NewDecoder(r)
	var err error
	for err == nil {
		err = decodeYAML(dec, &yaml.Node{})
	}

	return len(data) - r.Len()
}

// lineStart returns the position of the first visible character of a line.
func lineStart(name string, data []byte, line int) model.Position {
	text := lineText(data, line)

	return model.Position{File: name, Line: line, Column: len(text) - len(strings.TrimLeft(text, " \t")) + 1}
}

func lineText(data []byte, line int) string {
	rest := string(data)
	for ; line > 1; line-- {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	text, _, _ := strings.Cut(rest, "\n")

	return strings.TrimRight(text, "\r")
}

// parserLine removes "line 7: " from a message of the parser and returns the line, or 0.
func parserLine(err error) (line int, message string) {
	message = strings.TrimPrefix(err.Error(), "yaml: ")
	if n, _ := fmt.Sscanf(message, "line %d: ", &line); n == 1 {
		_, message, _ = strings.Cut(message, ": ")
	}

	return line, message
}
