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

// jsonReader makes a tree of JSON. It has a parser of its own because YAML
// does not read all JSON: not the surrogate pairs that many encoders write.
type jsonReader struct {
	*yamlread.Tree
	dec      *json.Decoder
	problems model.Problems
	values   int
	// replaces reports whether the document holds the sign of a replaced character itself.
	replaces func() bool
}

// readJSON reads a document that is known to be valid JSON.
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

// offset is where the next token begins.
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

// checkString refuses half of a surrogate pair, which decoding would replace silently.
func (r *jsonReader) checkString(at uint32, s string) {
	if strings.ContainsRune(s, utf8.RuneError) && !r.replaces() {
		r.problems.Add(r.Position(at), "write the whole pair, or the character itself", "the text holds half of a surrogate pair")
	}
}

// members reads what is within a list or mapping.
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

// entries returns what reads an entry of a mapping.
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
			yamlread.AddTwice(&r.problems, r.Position(at), key, r.Position(first))
			r.Truncate(i)
			return err
		}
		keys.Add(key, at)

		return err
	}
}
