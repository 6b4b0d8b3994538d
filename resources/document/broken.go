package document

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/musterfleet/muster/model"
)

// brokenJSON finds what is wrong with JSON that cannot be read as YAML either.
func brokenJSON(name string, data []byte) model.Problems {
	err := json.Unmarshal(data, &json.RawMessage{})
	at := model.Position{File: name, Line: 1, Column: 1}
	if syntax := (&json.SyntaxError{}); errors.As(err, &syntax) {
		at = PositionAt(name, data, max(int(syntax.Offset)-1, 0))
	}
	message, hint := jsonWords(err.Error())

	return model.ProblemAt(at, hint, "invalid JSON: %s", message)
}

// jsonWords returns what the parser of JSON says about a document in words, and what
// to do about it.
func jsonWords(text string) (message, hint string) {
	what, isCharacter := strings.CutPrefix(text, "invalid character ")
	if !isCharacter {
		return "it ends too early", "a bracket, brace or quote is not closed"
	}
	for _, place := range []struct{ parser, words, hint string }{
		{" looking for beginning of value", "where a value begins", "put text in double quotes; the last item has no comma"},
		{" looking for beginning of object key string", "where a key begins", "put keys in double quotes; the last entry has no comma"},
		{" after object key:value pair", "after a value", "a comma or a closing brace is missing before it"},
		{" after object key", "after a key", "a colon is missing before it"},
		{" after array element", "after an item", "a comma or a closing bracket is missing before it"},
		{" after top-level value", "after the document", "a file holds one document"},
		{" in string escape code", "in an escape of text", `write a backslash as \\`},
		{` in \u hexadecimal character escape`, "in an escape of text", "four hexadecimal digits follow \\u"},
		{" in string literal", "in text", "write it as an escape, such as \\n"},
		{" in literal ", "in a word", "put text in double quotes"},
		{" in ", "in a number", "put text in double quotes"},
	} {
		if i := strings.Index(what, place.parser); i >= 0 {
			return "unexpected " + what[:i] + " " + place.words, place.hint
		}
	}

	return "unexpected " + what, ""
}
