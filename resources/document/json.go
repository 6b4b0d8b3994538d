package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

// jsonReader makes values of JSON. It has a parser of its own because YAML
// does not read all JSON: not the surrogate pairs that many encoders write.
type jsonReader struct {
	name     string
	data     []byte
	dec      *json.Decoder
	problems model.Problems
	// line and lineStart go with offset, which only grows.
	line, lineStart, offset int
}

// readJSON reads a document that is known to be valid JSON.
func readJSON(name string, data []byte) (Value, model.Problems) {
	r := jsonReader{name: name, data: data, line: 1, dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	v, err := r.value(0)
	if err != nil {
		r.problems.Add(r.position(), "", "%v", err)
	}

	return v, r.problems
}

// position is where the next token begins.
func (r *jsonReader) position() model.Position {
	at := int(r.dec.InputOffset())
	for at < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[at]) >= 0 {
		at++
	}
	for ; r.offset < at; r.offset++ {
		if r.data[r.offset] == '\n' {
			r.line++
			r.lineStart = r.offset + 1
		}
	}

	return model.Position{File: r.name, Line: r.line, Column: utf8.RuneCount(r.data[r.lineStart:at]) + 1}
}

func (r *jsonReader) value(depth int) (Value, error) {
	v := Value{Pos: r.position()}
	if depth > maxDepth {
		return v, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
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
			return r.object(v, depth)
		}
		return r.array(v, depth)
	}

	return v, nil
}

// checkString refuses half of a surrogate pair, which decoding would replace silently.
func (r *jsonReader) checkString(pos model.Position, s string) {
	if strings.ContainsRune(s, utf8.RuneError) && !bytes.Contains(r.data, []byte("\ufffd")) && !bytes.Contains(bytes.ToLower(r.data), []byte(`\ufffd`)) {
		r.problems.Add(pos, "write the whole pair, or the character itself", "the text holds half of a surrogate pair")
	}
}

func (r *jsonReader) array(v Value, depth int) (Value, error) {
	v.Kind = List
	for r.dec.More() {
		item, err := r.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.Items = append(v.Items, item)
	}
	_, err := r.dec.Token()

	return v, err
}

func (r *jsonReader) object(v Value, depth int) (Value, error) {
	v.Kind = Map
	keys := keySet{entries: &v.Entries}
	for r.dec.More() {
		e := Entry{Pos: r.position()}
		token, err := r.dec.Token()
		if err != nil {
			return v, err
		}
		e.Key, _ = token.(string)
		r.checkString(e.Pos, e.Key)
		if e.Value, err = r.value(depth + 1); err != nil {
			return v, err
		}
		if first, twice := keys.find(e.Key); twice {
			r.problems.Add(e.Pos, "keep one of them", "the key `%s` is there twice, first at %s", e.Key, first.Pos)
			continue
		}
		keys.add(e)
	}
	_, err := r.dec.Token()

	return v, err
}
