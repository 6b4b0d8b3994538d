package document

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
)

const (
	// maxExpanded and maxExpandedBytes limit the expansion of all aliases together. Without a limit a
	// few lines could expand to billions of values.
	maxExpanded      = 200_000
	maxExpandedBytes = 64 << 20
)

type yamlReader struct {
	name string
	// restore restores the characters that hideBreaks replaced, or is nil.
	restore  *strings.Replacer
	problems model.Problems
	// open are the anchored nodes being converted, to detect an alias inside its own anchor.
	open map[*yaml.Node]bool
	// aliases is the nesting depth of aliases. expanded and expandedBytes count their expansion.
	aliases, expanded, expandedBytes int
	values                           int
	// stopped reports that a limit was exceeded. The reader then converts no more values.
	stopped bool
}

// readYAML reads a document in YAML. breaks reports whether it contains any of lineBreaks. ok reports
// whether its syntax is valid.
func readYAML(name string, data []byte, breaks bool) (v Value, problems model.Problems, ok bool) {
	r := yamlReader{name: name}
	if breaks {
		data, r.restore = hideBreaks(data)
	}
	data = asYAML11(data)
	v = Value{Pos: model.Position{File: name, Line: 1, Column: 1}}
	if len(data) > MaxValues && countValues(data) > MaxValues {
		return v, model.Problems{tooMany(name)}, false
	}
	first, second, err := parseYAML(data)
	if err != nil {
		if indented, changed := asIndented(data); changed {
			if root, more, failed := parseYAML(indented); failed == nil {
				first, second, err = root, more, nil
			}
		}
	}
	switch {
	case err != nil:
		return v, model.Problems{syntaxProblem(name, data, err)}, false
	case second != nil:
		at := model.Position{File: name, Line: second.Line, Column: second.Column}
		return v, model.ProblemAt(at, "put each document into a separate file", "a second document begins here"), false
	case first == nil:
		return v, nil, true
	}
	v = r.value(first, 0)

	return v, r.problems, true
}

// parseYAML returns the root of a document, or nil, and a second document if there is one.
func parseYAML(data []byte) (root, second *yaml.Node, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var documents [2]yaml.Node
	for i := range documents {
		switch err := decodeYAML(dec, &documents[i]); {
		case errors.Is(err, io.EOF):
			return root, nil, nil
		case err != nil:
			return nil, nil, err
		case i == 0 && len(documents[0].Content) > 0:
			root = documents[0].Content[0]
		}
	}

	return root, &documents[1], nil
}

// decodeYAML is Decode that recovers panics, because some inputs make the parser panic, and no
// input may stop an agent.
func decodeYAML(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()

	return dec.Decode(n)
}

func (r *yamlReader) pos(n *yaml.Node) model.Position {
	return model.Position{File: r.name, Line: n.Line, Column: n.Column}
}

func (r *yamlReader) stop(n *yaml.Node, format string, args ...any) {
	r.stopped = true
	r.problems.Add(r.pos(n), "", format, args...)
}

func (r *yamlReader) value(n *yaml.Node, depth int) Value {
	v := Value{Pos: r.pos(n)}
	if r.aliases > 0 {
		r.expanded++
		r.expandedBytes += len(n.Value)
	}
	switch r.values++; {
	case r.stopped:
		return v
	case depth > MaxDepth:
		r.stop(n, "nested deeper than %d levels", MaxDepth)
		return v
	case r.expanded > maxExpanded || r.expandedBytes > maxExpandedBytes:
		r.stop(n, "the aliases of the document expand to too much: more than %d values or %d MiB", maxExpanded, maxExpandedBytes>>20)
		return v
	case r.values > MaxValues:
		r.stopped = true
		r.problems.Append(tooMany(r.name))
		return v
	}
	if n.Anchor != "" {
		if r.open == nil {
			r.open = map[*yaml.Node]bool{}
		}
		r.open[n] = true
		defer delete(r.open, n)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return r.alias(n, depth)
	case yaml.SequenceNode:
		if n.Tag != "!!seq" {
			r.badTag(n)
		}
		v.Kind, v.Items = List, make([]Value, len(n.Content))
		for i, item := range n.Content {
			v.Items[i] = r.value(item, depth+1)
		}
	case yaml.MappingNode:
		if n.Tag != "!!map" {
			r.badTag(n)
		}
		v.Kind, v.Entries = Map, r.entries(n, depth)
	default:
		v.Kind, v.Text = r.scalar(n)
	}

	return v
}

func (r *yamlReader) alias(n *yaml.Node, depth int) Value {
	if r.open[n.Alias] {
		r.problems.Add(r.pos(n), "", "the alias `*%s` is inside its own anchor", n.Value)
		return Value{Pos: r.pos(n)}
	}
	r.aliases++
	defer func() { r.aliases-- }()

	return r.value(n.Alias, depth)
}

func (r *yamlReader) scalar(n *yaml.Node) (kind Kind, text string) {
	kind, text = String, n.Value
	switch n.Tag {
	case "!!null":
		kind, text = Null, ""
	case "!!bool":
		kind = Bool
	case "!!int", "!!float":
		kind = Number
	case "!!str", "!!timestamp", "!!merge":
	case "!!binary":
		raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if text = string(raw); err != nil {
			r.problems.Add(r.pos(n), "", "`!!binary` does not hold base64: %v", err)
		}
	default:
		r.badTag(n)
	}
	if n.Style&yaml.TaggedStyle != 0 && !tagFits(n.Tag, n.Value) {
		r.problems.Add(r.pos(n), "", "%q is no %s", n.Value, n.Tag)
	}
	if r.restore != nil {
		text = r.restore.Replace(text)
	}

	return kind, text
}

func tagFits(tag, text string) bool {
	var err error
	switch tag {
	case "!!int":
		_, err = strconv.ParseInt(text, 0, 64)
	case "!!float":
		_, err = strconv.ParseFloat(text, 64)
	case "!!bool":
		_, err = strconv.ParseBool(text)
	case "!!null":
		return text == "" || text == "~" || strings.EqualFold(text, "null")
	}

	return err == nil
}

func (r *yamlReader) badTag(n *yaml.Node) {
	r.problems.Add(r.pos(n), "remove the tag, or quote the text if it begins with `!`", "the tag `%s` has no meaning here", n.Tag)
}

// entries returns the entries of a mapping, with the entries of `<<` that it does not set last.
func (r *yamlReader) entries(n *yaml.Node, depth int) []Entry {
	out := entryList{entries: make([]Entry, 0, len(n.Content)/2)}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			merges = append(merges, value)
			continue
		}
		text, ok := r.key(key)
		if !ok {
			continue
		}
		e := Entry{Key: text, Pos: r.pos(key), Value: r.value(value, depth+1)}
		out.add(e, &r.problems)
	}
	for _, n := range merges {
		r.merge(&out, n, depth)
	}

	return out.entries
}

// merge adds the entries of a `<<` that the mapping does not set. Of several mappings the first wins.
func (r *yamlReader) merge(out *entryList, n *yaml.Node, depth int) {
	merged := r.value(n, depth)
	sources := []Value{merged}
	if merged.Kind == List {
		sources = merged.Items
	}
	for _, source := range sources {
		if source.Kind != Map && !r.stopped {
			r.problems.Add(r.pos(n), "write `<<: *anchor`", "`<<` takes a mapping or a list of mappings, not %s", source.Kind)
		}
		for _, e := range source.Entries {
			out.add(e, nil)
		}
	}
}

func (r *yamlReader) key(n *yaml.Node) (text string, ok bool) {
	at := r.pos(n)
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0:
		r.problems.Add(at, "an expression that begins with a brace must be quoted: \"{{ … }}\"", "a key must be text, not a mapping")
	case n.Kind == yaml.MappingNode:
		r.problems.Add(at, "", "a key must be text, not %s", Map)
	case n.Kind == yaml.SequenceNode:
		r.problems.Add(at, "", "a key must be text, not %s", List)
	case n.Tag == "!!null":
		r.problems.Add(at, "write the key before the colon, in quotes if it is `null` or `~`", "a key must not be empty")
	default:
		_, text = r.scalar(n)
		return text, true
	}

	return "", false
}

// entryList collects the entries of a mapping without duplicate keys. It compares the keys of a small
// mapping, and indexes a large mapping.
type entryList struct {
	entries []Entry
	index   map[string]model.Position
}

const maxCompared = 12

// add adds an entry, unless the mapping has its key. Then it adds a problem if problems is set.
func (l *entryList) add(e Entry, problems *model.Problems) {
	first, twice := l.find(e.Key)
	switch {
	case !twice:
		l.entries = append(l.entries, e)
		if l.index != nil {
			l.index[e.Key] = e.Pos
		}
	case problems != nil:
		problems.Add(e.Pos, "keep one of them", "duplicate key `%s`, first at %s", e.Key, first)
	}
}

func (l *entryList) find(key string) (first model.Position, found bool) {
	if l.index == nil && len(l.entries) > maxCompared {
		l.index = make(map[string]model.Position, cap(l.entries))
		for i := range l.entries {
			l.index[l.entries[i].Key] = l.entries[i].Pos
		}
	}
	if l.index != nil {
		first, found = l.index[key]
		return first, found
	}
	for i := range l.entries {
		if l.entries[i].Key == key {
			return l.entries[i].Pos, true
		}
	}

	return first, false
}

// YAML converts a JSON document to YAML and keeps the order of its keys.
func YAML(text []byte) ([]byte, error) {
	root, _, err := parseYAML(escape(text))
	if err == nil && root == nil {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	setStyle(root)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, err
	}

	return b.Bytes(), e.Close()
}

// setStyle clears the JSON style of a node, so that the encoder writes blocks. It quotes texts with
// hidden characters, to escape them, and the key "<<", which would merge.
func setStyle(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && (n.Value == "<<" || strings.ContainsFunc(n.Value, isHidden)) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		setStyle(c)
	}
}

// escape escapes characters that JSON allows and YAML does not, or that YAML reads as line breaks.
// In JSON they occur only in texts.
func escape(text []byte) []byte {
	if !bytes.ContainsFunc(text, isHidden) {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if isHidden(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}

	return b.Bytes()
}

// isHidden reports whether r is invisible: a control character other than a line end or tab, a line
// end of YAML 1.1, a character that reorders text, or a noncharacter.
func isHidden(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\ufeff', '\ufffe', '\uffff', '\u2028', '\u2029':
		return true
	default:
		return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
	}
}
