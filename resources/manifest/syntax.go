package manifest

import (
	"errors"
	"io"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
)

// syntaxProblem places an error of the parser. The parser itself tells only a
// line, and often that of something around it. So the document is parsed once
// more, byte by byte: how far the parser had to read is where it failed.
func syntaxProblem(name string, data []byte, err error) model.Problem {
	line, message := parserLine(err)
	offset := readUntilError(data)
	at := positionAt(name, data, offset)
	switch {
	case strings.HasPrefix(message, "unknown anchor"):
		if i := strings.Index(string(data), "*"+quoted(message)); i >= 0 {
			at = positionAt(name, data, i)
		}
		return model.Problem{Pos: at, Message: "unknown alias `*" + quoted(message) + "`", Hint: "name it before with `&" + quoted(message) + "`, or quote a text that begins with `*`"}
	case strings.Contains(message, "unexpected end of stream"), strings.Contains(message, "unexpected document indicator"):
		at = lineStart(name, data, max(line, 1))
		return model.Problem{Pos: at, Message: "the quote that is opened here is never closed", Hint: "close it, or put the text into a block: `key: |`"}
	case message == "mapping values are not allowed in this context":
		if i := strings.LastIndex(string(data[:offset]), ":"); i >= 0 {
			at = positionAt(name, data, i)
		}
		return model.Problem{Pos: at, Message: "a `:` cannot stand here", Hint: "quote the text that holds it, or check the indentation"}
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
	case strings.Contains(message, "did not find expected ',' or"):
		return "a brace or bracket before this place is not closed; quote an expression that begins with a brace"
	default:
		return ""
	}
}

// quoted gives what stands in single quotes in a message.
func quoted(message string) string {
	_, rest, _ := strings.Cut(message, "'")
	word, _, _ := strings.Cut(rest, "'")

	return word
}

// byteReader hands out one byte at a time and counts them.
type byteReader struct {
	data []byte
	n    int
}

func (r *byteReader) Read(p []byte) (int, error) {
	if r.n == len(r.data) {
		return 0, io.EOF
	}
	p[0] = r.data[r.n]
	r.n++

	return 1, nil
}

// readUntilError gives the offset of the last visible character that the parser
// asked for before it failed.
func readUntilError(data []byte) int {
	r := &byteReader{data: data}
	dec := yaml.NewDecoder(r)
	for {
		var n yaml.Node
		if err := decodeNode(dec, &n); err != nil {
			if errors.Is(err, io.EOF) {
				return len(data)
			}
			break
		}
	}
	end := r.n
	for end > 0 && strings.IndexByte(" \t\r\n", data[end-1]) >= 0 {
		end--
	}

	return max(end-1, 0)
}

// lineStart gives the place of the first visible character of a line.
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
