package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

// jsonReader converts the tokens of JSON to values. It does not use the YAML parser, because that
// rejects the surrogate pairs that many encoders write.
type jsonReader struct {
	text     string
	dec      *json.Decoder
	problems model.Problems
	values   int
	// at is the offset of the last position.
	at  int
	pos model.Position
	// replaces reports whether the document itself contains the replacement character.
	replaces func() bool
}

func readJSON(name string, data []byte) (Value, model.Problems) {
	text := string(data)
	r := jsonReader{text: text, dec: json.NewDecoder(strings.NewReader(text)), pos: model.Position{File: name, Line: 1, Column: 1}}
	r.replaces = sync.OnceValue(func() bool {
		return strings.Contains(text, "\ufffd") || strings.Contains(strings.ToLower(text), `\ufffd`)
	})
	r.dec.UseNumber()
	v, err := r.value(0)
	var problem model.Problem
	switch {
	case errors.As(err, &problem):
		r.problems.Append(problem)
	case err != nil:
		r.problems.Add(r.position(), "", "%v", err)
	}

	return v, r.problems
}

func (r *jsonReader) position() model.Position {
	at := int(r.dec.InputOffset())
	for at < len(r.text) && strings.IndexByte(" \t\r\n,:", r.text[at]) >= 0 {
		at++
	}
	before := r.text[r.at:at]
	if lines := strings.Count(before, "\n"); lines > 0 {
		r.pos.Line += lines
		r.pos.Column = 1
		before = before[strings.LastIndexByte(before, '\n')+1:]
	}
	r.pos.Column += utf8.RuneCountInString(before)
	r.at = at

	return r.pos
}

func (r *jsonReader) value(depth int) (v Value, err error) {
	v.Pos = r.position()
	switch {
	case depth > MaxDepth:
		return v, fmt.Errorf("nested deeper than %d levels", MaxDepth)
	case r.values == MaxValues:
		return v, tooMany(v.Pos.File)
	}
	r.values++
	token, err := r.dec.Token()
	if err != nil {
		return v, err
	}
	switch t := token.(type) {
	case nil:
	case bool:
		v.Kind, v.Text = Bool, fmt.Sprint(t)
	case json.Number:
		v.Kind, v.Text = Number, t.String()
	case string:
		v.Kind, v.Text = String, t
		r.checkString(v.Pos, t)
	case json.Delim:
		if t == '{' {
			v.Kind = Map
			v.Entries, err = r.entries(depth + 1)
		} else {
			v.Kind = List
			v.Items, err = r.items(depth + 1)
		}
		if err == nil {
			_, err = r.dec.Token()
		}
	}

	return v, err
}

// checkString reports half of a surrogate pair, which the decoder would replace silently.
func (r *jsonReader) checkString(at model.Position, s string) {
	if strings.ContainsRune(s, utf8.RuneError) && !r.replaces() {
		r.problems.Add(at, "write the whole pair, or the character itself", "the text holds half of a surrogate pair")
	}
}

func (r *jsonReader) items(depth int) (items []Value, err error) {
	for err == nil && r.dec.More() {
		var v Value
		v, err = r.value(depth)
		items = append(items, v)
	}

	return items, err
}

func (r *jsonReader) entries(depth int) ([]Entry, error) {
	var out entryList
	for r.dec.More() {
		e := Entry{Pos: r.position()}
		token, err := r.dec.Token()
		if err != nil {
			return out.entries, err
		}
		e.Key, _ = token.(string)
		r.checkString(e.Pos, e.Key)
		e.Value, err = r.value(depth)
		out.add(e, &r.problems)
		if err != nil {
			return out.entries, err
		}
	}

	return out.entries, nil
}

func brokenJSON(name string, data []byte) model.Problems {
	err := json.Unmarshal(data, &json.RawMessage{})
	at := model.Position{File: name, Line: 1, Column: 1}
	if syntax := (&json.SyntaxError{}); errors.As(err, &syntax) {
		at = PositionAt(name, data, max(int(syntax.Offset)-1, 0))
	}
	message, hint := jsonWords(err.Error())

	return model.ProblemAt(at, hint, "invalid JSON: %s", message)
}

// jsonWords converts a message of the JSON parser to a problem and its remedy.
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
