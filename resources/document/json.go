package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document/yamlread"
)

// jsonReader reads JSON into a tree. It does not use the YAML parser, because that rejects the
// surrogate pairs that many encoders write.
type jsonReader struct {
	*yamlread.Tree
	dec      *json.Decoder
	problems model.Problems
	values   int
	// replaces reports whether the document itself contains the replacement character.
	replaces func() bool
}

// readJSON reads valid JSON.
func readJSON(name string, data []byte) (Node, model.Problems) {
	text := string(data)
	r := jsonReader{Tree: yamlread.NewTree(yamlread.NewSource(name, text, false)), dec: json.NewDecoder(strings.NewReader(text))}
	r.replaces = sync.OnceValue(func() bool {
		return strings.Contains(text, "\ufffd") || strings.Contains(strings.ToLower(text), `\ufffd`)
	})
	r.dec.UseNumber()
	var problem model.Problem
	switch err := r.value(0); {
	case errors.As(err, &problem):
		r.problems.Append(problem)
	case err != nil:
		r.problems.Add(r.Position(r.offset()), "", "%v", err)
	}

	return Node{tree: r.Tree}, r.problems
}

// offset returns the offset of the next token.
func (r *jsonReader) offset() uint32 {
	at := int(r.dec.InputOffset())
	for at < len(r.Text) && strings.IndexByte(" \t\r\n,:", r.Text[at]) >= 0 {
		at++
	}

	return uint32(at)
}

func (r *jsonReader) value(depth int) error {
	i := r.Add(yamlread.Node{At: r.offset()})
	switch {
	case depth > yamlread.MaxDepth:
		return fmt.Errorf("nested deeper than %d levels", yamlread.MaxDepth)
	case r.values == yamlread.MaxValues:
		return yamlread.TooMany(r.Name)
	}
	r.values++
	token, err := r.dec.Token()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case nil:
	case bool:
		r.scalar(i, Bool, fmt.Sprint(t))
	case json.Number:
		r.scalar(i, Number, t.String())
	case string:
		r.string(i, t)
	case json.Delim:
		r.Node(i).Kind = List
		member := r.value
		if t == '{' {
			r.Node(i).Kind = Map
			member = r.entries(&yamlread.Keys{})
		}
		return r.members(i, depth, member)
	}

	return nil
}

func (r *jsonReader) scalar(i int, kind Kind, text string) {
	n := r.Node(i)
	n.Kind = kind
	r.SetText(n, text)
}

func (r *jsonReader) string(i int, text string) {
	r.scalar(i, String, text)
	r.checkString(r.Node(i).At, text)
}

// checkString reports half of a surrogate pair, which the decoder would replace silently.
func (r *jsonReader) checkString(at uint32, s string) {
	if strings.ContainsRune(s, utf8.RuneError) && !r.replaces() {
		r.problems.Add(r.Position(at), "write the whole pair, or the character itself", "the text holds half of a surrogate pair")
	}
}

// members reads the content of a list or mapping.
func (r *jsonReader) members(i, depth int, member func(depth int) error) error {
	defer func() { r.Close(i) }()
	for r.dec.More() {
		if err := member(depth + 1); err != nil {
			return err
		}
	}
	_, err := r.dec.Token()

	return err
}

// entries returns a function that reads an entry of a mapping.
func (r *jsonReader) entries(keys *yamlread.Keys) func(depth int) error {
	return func(depth int) error {
		i := r.Add(yamlread.Node{At: r.offset()})
		token, err := r.dec.Token()
		if err != nil {
			r.Truncate(i)
			return err
		}
		key, _ := token.(string)
		r.string(i, key)
		at := r.Node(i).At
		err = r.value(depth)
		if first, twice := keys.Find(key); twice {
			yamlread.AddDuplicate(&r.problems, r.Position(at), key, r.Position(first))
			r.Truncate(i)
			return err
		}
		keys.Add(key, at)

		return err
	}
}

// brokenJSON returns the problem of invalid JSON.
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
