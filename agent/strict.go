package agent

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// strict decodes a document into a struct by its yaml tags: unknown keys, keys
// twice and values of the wrong kind are problems, all of them at their places.
type strict struct {
	name     string
	places   map[string]model.Position
	problems model.Problems
}

// decodeStrict fills target, a pointer to a struct. It gives the place of each
// key by its path (nats.servers) and all that is wrong.
func decodeStrict(name string, data []byte, target any) (map[string]model.Position, model.Problems) {
	d := strict{name: name, places: map[string]model.Position{}}
	root, problems := parseNode(name, data)
	if problems != nil {
		return d.places, problems
	}
	d.structure(root, reflect.ValueOf(target).Elem(), "")

	return d.places, d.problems
}

// parseNode parses the one document that data holds.
func parseNode(name string, data []byte) (_ *yaml.Node, problems model.Problems) {
	// The parser has panics for input it did not foresee, and no input may stop
	// an agent.
	defer func() {
		if r := recover(); r != nil {
			problems = syntaxProblem(name, fmt.Errorf("yaml: %v", r))
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, syntaxProblem(name, errors.New("the document is empty"))
	case err != nil:
		return nil, syntaxProblem(name, err)
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, syntaxProblem(name, errors.New("it must be one YAML document, not several"))
	}

	return doc.Content[0], nil
}

func syntaxProblem(name string, err error) model.Problems {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	pos := model.Position{File: name}
	if n, _ := fmt.Sscanf(message, "line %d:", &pos.Line); n == 1 {
		_, message, _ = strings.Cut(message, ": ")
	}

	return model.Problems{{Pos: pos, Message: message}}
}

func (d *strict) pos(n *yaml.Node) model.Position {
	return model.Position{File: d.name, Line: n.Line, Column: n.Column}
}

func (d *strict) structure(n *yaml.Node, v reflect.Value, path string) {
	if isNull(n) && path != "" {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.mismatch(n, path, "a mapping of keys and values")
		return
	}
	known, byKey := yamlFields(v)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field, ok := byKey[key.Value]
		full := path + key.Value
		switch first, twice := d.places[full]; {
		case !ok:
			d.problems.Add(d.pos(key), nearest(key.Value, known), "unknown key `%s`", full)
			continue
		case twice:
			d.problems.Add(d.pos(key), "keep one of them", "`%s` is set twice, first at %s", full, first)
			continue
		}
		d.places[full] = d.pos(value)
		d.value(value, field, full)
	}
}

func nearest(word string, known []string) string {
	if near := resource.Nearest(word, known); near != "" {
		return "did you mean `" + near + "`?"
	}

	return "known are: " + strings.Join(known, ", ")
}

func yamlFields(v reflect.Value) (keys []string, byKey map[string]reflect.Value) {
	byKey = map[string]reflect.Value{}
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		keys = append(keys, key)
		byKey[key] = v.Field(i)
	}

	return keys, byKey
}

// value decodes one value. Nothing leaves the default.
func (d *strict) value(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.AliasNode {
		d.problems.Add(d.pos(n), "write the value out", "`%s`: aliases are not allowed here", path)
		return
	}
	if isNull(n) {
		return
	}
	if text, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.text(n, text, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, path+".")
	case reflect.Slice:
		d.list(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func (d *strict) text(n *yaml.Node, v encoding.TextUnmarshaler, path string) {
	if n.Kind != yaml.ScalarNode {
		d.mismatch(n, path, "a single value")
		return
	}
	if err := v.UnmarshalText([]byte(n.Value)); err != nil {
		d.problems.Add(d.pos(n), "", "`%s`: %v", path, err)
	}
}

func (d *strict) list(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.mismatch(n, path, "a list")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		at := path + "." + strconv.Itoa(i)
		d.places[at] = d.pos(item)
		d.value(item, out.Index(i), at)
	}
	v.Set(out)
}

func (d *strict) mapping(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.mismatch(n, path, "a mapping")
		return
	}
	if v.Type().Elem().Kind() == reflect.Interface {
		v.Set(reflect.ValueOf(d.free(n, path).Plain()))
		return
	}
	out := reflect.MakeMap(v.Type())
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || out.MapIndex(reflect.ValueOf(key.Value)).IsValid() {
			d.problems.Add(d.pos(key), "each key is one text, and there once", "`%s`: the key %q cannot stand here", path, key.Value)
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(n.Content[i+1], item, path+"."+key.Value)
		out.SetMapIndex(reflect.ValueOf(key.Value), item)
	}
	v.Set(out)
}

// free decodes anything, in the form of decoded JSON: scalars keep their text,
// as in a manifest, unless they are numbers, booleans or nothing.
func (d *strict) free(n *yaml.Node, path string) resource.Value {
	v := resource.Value{Text: n.Value, Kind: map[string]resource.Kind{
		"!!null": resource.Null, "!!bool": resource.Bool, "!!int": resource.Number, "!!float": resource.Number,
	}[n.Tag]}
	switch n.Kind {
	case yaml.ScalarNode:
		if v.Kind == resource.Null && n.Tag != "!!null" {
			v.Kind = resource.String
		}
	case yaml.SequenceNode:
		v.Kind = resource.List
		for i, item := range n.Content {
			v.Items = append(v.Items, d.free(item, path+"."+strconv.Itoa(i)))
		}
	case yaml.MappingNode:
		v.Kind = resource.Map
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if _, twice := v.Get(key.Value); twice || key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
				d.problems.Add(d.pos(key), "each key is one text, and there once", "`%s`: the key %q cannot stand here", path, key.Value)
				continue
			}
			v.Entries = append(v.Entries, resource.Entry{Key: key.Value, Value: d.free(n.Content[i+1], path+"."+key.Value)})
		}
	default:
		d.problems.Add(d.pos(n), "write the value out", "`%s`: aliases are not allowed here", path)
	}

	return v
}

func (d *strict) scalar(n *yaml.Node, v reflect.Value, path string) {
	want := map[reflect.Kind]string{reflect.Bool: "true or false", reflect.Int: "a whole number"}[v.Kind()]
	switch {
	case n.Kind != yaml.ScalarNode:
		d.mismatch(n, path, "a single value")
	case v.Kind() == reflect.String:
		v.SetString(n.Value)
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(n.Value)
		if err != nil {
			d.mismatch(n, path, want)
		}
		v.SetBool(b)
	default:
		i, err := strconv.ParseInt(n.Value, 10, 32)
		if err != nil {
			d.mismatch(n, path, want)
			return
		}
		v.SetInt(i)
	}
}

func (d *strict) mismatch(n *yaml.Node, path, want string) {
	got := map[yaml.Kind]string{yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list", yaml.AliasNode: "an alias"}[n.Kind]
	if n.Kind == yaml.ScalarNode {
		got = strconv.Quote(n.Value)
	}
	what := "`" + strings.TrimSuffix(path, ".") + "`"
	if path == "" {
		what = "the document"
	}
	d.problems.Add(d.pos(n), "", "%s must be %s, not %s", what, want, got)
}
