package manifest

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// The values of hierarchy.merge.
const (
	mergeFirst = "first"
	mergeDeep  = "deep"
)

// keyJetFile is the setting with the template of the resource list.
const keyJetFile = "resources_jet_file"

// DefaultMaxBytes is the default limit of the size of a document.
const DefaultMaxBytes = document.MaxBytes

// Document is a parsed manifest with unresolved expressions. It is immutable and safe for
// concurrent use.
type Document struct {
	name string
	text []byte
	// lines returns the offsets of the lines, for the positions of problems.
	lines func() []int

	Data      document.Node
	Order     document.Node
	Merge     string
	Overrides document.Node

	// section is muster or ccm. It is empty in a document with data only.
	section   string
	Fail      document.Value
	Flapping  document.Value
	Limit     document.Value
	Pre, Post document.Value
	Resources document.Node
	// JetFile is the path of a template that renders the resources.
	JetFile document.Value
	// problems are the problems of the structure.
	problems model.Problems
}

// IsCCM reports whether the section of the document is ccm.
func (d *Document) IsCCM() bool { return d.section == "ccm" }

// emptyDocument returns an empty document. name is the file name in positions.
func emptyDocument(name string) *Document { return documentOf(name, nil) }

func documentOf(name string, text []byte) *Document {
	return &Document{name: name, text: text, lines: sync.OnceValue(func() []int { return startsOfLines(text) }), Merge: mergeFirst}
}

// Parse reads a manifest in YAML or JSON. name is the file name in positions. It returns
// model.Problems. Resolve reports unknown keys and wrong values.
func Parse(name string, data []byte) (*Document, error) {
	return parse(name, data, DefaultMaxBytes)
}

// ParseData is Parse for a source of data, which may be a mapping without a data key.
func ParseData(name string, data []byte) (*Document, error) {
	return parseData(name, data, DefaultMaxBytes)
}

// parse reads a manifest in YAML or JSON of at most limit bytes. It fails if the document is
// unreadable (syntax, encoding, size, depth, aliases, duplicate keys). Resolve reports unknown keys
// and other problems. The error is model.Problems. The caller must not change data afterwards.
//
// Texts keep their bytes as YAML defines them. Line breaks of plain, folded and literal texts are
// read as "\n". Only a text in double quotes can contain "\r".
func parse(name string, data []byte, limit int64) (*Document, error) {
	root, err := readMapping(name, data, limit, "a manifest", "it begins with `muster:` or `data:`")
	if err != nil {
		return nil, err
	}

	return newDocument(name, data, root), nil
}

// readMapping reads a document that must be a mapping. what and hint describe it in a problem.
func readMapping(name string, data []byte, limit int64, what, hint string) (document.Node, error) {
	root, problems := document.Parse(name, data, limit)
	switch {
	case len(problems) > 0:
		return root, tidyProblems(problems)
	case root.Kind() == document.Null:
		return root, model.ProblemAt(root.Pos(), "", "the document is empty")
	case root.Kind() != document.Map:
		return root, model.ProblemAt(root.Pos(), hint, "%s must be a mapping, not %s", what, root.Kind())
	default:
		return root, nil
	}
}

// Name returns the file name in positions.
func (d *Document) Name() string { return d.name }

// Problems returns the problems of the structure: unknown keys and values of the wrong kind.
// Resolve also reports them.
func (d *Document) Problems() model.Problems { return slices.Clone(d.problems) }

// HasResources reports whether the document has the section muster or ccm.
func (d *Document) HasResources() bool { return d.section != "" }

func newDocument(name string, text []byte, root document.Node) *Document {
	d := documentOf(name, text)
	if v, ok := root.Get("protocol"); ok && v.IsScalar() {
		d.problems.Add(v.Pos(), "take the manifest within it", "this is a document of protocol %s, not a manifest", v.Text())
		return d
	}
	for key, value := range root.Entries() {
		switch name := key.Text(); name {
		case "data":
			d.Data = d.expect(name, value, document.Map)
		case "hierarchy":
			d.hierarchy(name, value)
		case "overrides":
			d.Overrides = d.expect(name, value, document.Map)
			for name, o := range d.Overrides.Entries() {
				d.expect(name.Text(), o, document.Map)
			}
		case "muster", "ccm":
			if d.section != "" {
				d.problems.Add(key.Pos(), "`ccm` is another name of `muster`: keep one of them", "`%s` and `%s` exclude each other", d.section, name)
				continue
			}
			d.section = name
			d.body(value)
		default:
			d.unknownAtTop(key)
		}
	}

	return d
}

// expect returns a value that must have a kind. It returns an empty value for null.
func (d *Document) expect(key string, v document.Node, kind document.Kind) document.Node {
	if v.Kind() == kind || v.Kind() == document.Null {
		return v
	}
	d.problems.Add(v.Pos(), "", "`%s` must be %s, not %s", key, kind, v.Kind())

	return document.Node{}
}

// topKeys and sectionKeys return the keys of a manifest and of its section muster.
func topKeys() []string { return []string{"data", "hierarchy", "overrides", "muster", "ccm"} }

func sectionKeys() []string {
	return []string{"fail_on_error", "flapping", "limit", "pre_message", "post_message", keyJetFile, "resources"}
}

// unknownAtTop reports an unknown key. The hint names the right place of a key of another level.
func (d *Document) unknownAtTop(key document.Node) {
	switch name := key.Text(); {
	case slices.Contains(sectionKeys(), name):
		d.problems.Add(key.Pos(), "put it below `muster:`, indented", "unknown key `%s`", name)
	case document.Nearest(name, topKeys()) == "":
		d.problems.Add(key.Pos(), "values are below `data:`; the resources of a manifest are items of `resources:` below `muster:`", "unknown key `%s`", name)
	default:
		d.unknown(key, "", topKeys())
	}
}

// unknownInSection is unknownAtTop for the section muster.
func (d *Document) unknownInSection(key document.Node) {
	if slices.Contains(topKeys(), key.Text()) {
		d.problems.Add(key.Pos(), "put it at the top level, beside `"+d.section+":`", "unknown key `%s` in `%s`", key.Text(), d.section)
		return
	}
	if key.Text() == "drift" {
		d.problems.Add(key.Pos(), "set it on a resource, on all resources of a type with `defaults`, or on an assignment with muster fleet push --drift", "unknown key `drift` in `%s`", d.section)
		return
	}
	d.unknown(key, d.section, sectionKeys())
}

func (d *Document) unknown(key document.Node, where string, known []string) {
	if where != "" {
		where = " in `" + where + "`"
	}
	d.problems.AddMade(func() model.Problem { return document.Unknown(key.Pos(), "key", key.Text(), where, known) })
}

func (d *Document) hierarchy(section string, h document.Node) {
	for key, v := range d.expect(section, h, document.Map).Entries() {
		switch name := key.Text(); name {
		case "order":
			d.Order = d.expect(name, v, document.List)
		case "merge":
			if !v.IsScalar() {
				d.problems.Add(v.Pos(), "one of first, deep", "`merge` cannot be %s", v.Kind())
				continue
			}
			text := strings.ToLower(v.Text())
			if text != mergeFirst && text != mergeDeep {
				d.problems.Add(v.Pos(), "one of first, deep", "`merge` cannot be %q", v.Text())
				continue
			}
			d.Merge = text
		default:
			d.unknown(key, section, []string{"order", "merge"})
		}
	}
}

func (d *Document) body(section document.Node) {
	for key, v := range d.expect(d.section, section, document.Map).Entries() {
		switch name := key.Text(); name {
		case "fail_on_error":
			d.Fail = v.Value()
		case "flapping":
			d.Flapping = v.Value()
		case "limit":
			d.Limit = v.Value()
		case "pre_message":
			d.Pre = v.Value()
		case "post_message":
			d.Post = v.Value()
		case keyJetFile:
			if d.JetFile = v.Value(); !v.IsScalar() && v.Kind() != document.Null {
				d.problems.Add(v.Pos(), "for example resources_jet_file: resources.jet", "`%s` must be text, not %s", name, v.Kind())
			}
		case "resources":
			d.Resources = d.expect(name, v, document.List)
		default:
			d.unknownInSection(key)
		}
	}
	if d.JetFile.Text != "" && d.Resources.Len() > 0 {
		d.problems.Add(d.JetFile.Pos, "keep one of them", "`resources` and `%s` exclude each other", keyJetFile)
	}
}

// parseData is parse for a source of data. Without a data key, the whole mapping is data.
func parseData(name string, data []byte, limit int64) (*Document, error) {
	root, err := readMapping(name, data, limit, "data", "write key: value")
	if err != nil {
		return nil, err
	}
	isDocument := false
	for key := range root.Entries() {
		switch name := key.Text(); name {
		case "muster", "ccm":
			return nil, model.ProblemAt(key.Pos(), "put it under `data:`, or remove it", "a source of data has no section `%s`", name)
		case "data", "hierarchy", "overrides":
			isDocument = true
		}
	}
	if !isDocument {
		d := documentOf(name, data)
		d.Data = root
		return d, nil
	}

	return newDocument(name, data, root), nil
}

// Position returns the position of the expression at an offset of a text. YAML folds, indents and
// escapes texts, so Position counts openers: the raw text has as many openers before the expression as
// the value. at is the position of the text.
func (d *Document) Position(at model.Position, text string, offset int) model.Position {
	if at.File != d.name || at.Line == 0 {
		return at
	}
	line, ok := d.line(at.Line)
	if !ok {
		return at
	}
	i := line
	for column := 1; column < at.Column; column++ {
		_, size := utf8.DecodeRune(d.text[i:])
		i += size
	}
	for skip := openers(text, offset); i+1 < len(d.text); i++ {
		if d.text[i+1] != '{' || d.text[i] != '$' && d.text[i] != '{' {
			continue
		}
		if skip == 0 {
			pos := document.PositionAt(d.name, d.text[line:], i-line)
			pos.Line += at.Line - 1
			return pos
		}
		skip--
	}

	return at
}

// line returns the byte offset of a line. Lines count from 1.
func (d *Document) line(n int) (int, bool) {
	starts := d.lines()
	if n > len(starts) {
		return 0, false
	}

	return starts[n-1], true
}

// startsOfLines returns the offsets of the lines.
func startsOfLines(text []byte) []int {
	var out []int
	at := 0
	for line := range bytes.Lines(text) {
		out = append(out, at)
		at += len(line)
	}

	return out
}

// openers counts `${` and `{{` before an offset.
func openers(s string, before int) int {
	n := 0
	for i := 0; i < before && i+1 < len(s); i++ {
		if s[i+1] == '{' && (s[i] == '$' || s[i] == '{') {
			n++
		}
	}

	return n
}
