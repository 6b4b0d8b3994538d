package syntax

import (
	"slices"
	"sync"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// The values of hierarchy.merge.
const (
	MergeFirst = "first"
	MergeDeep  = "deep"
)

// KeyJetFile is the setting that names the template of the resource list.
const KeyJetFile = "resources_jet_file"

// DefaultMaxBytes is the largest document that is parsed, by default.
const DefaultMaxBytes = 16 << 20

// Document is a parsed manifest with the place of every value; its expressions
// are not resolved. It is not changed after it was made, so it is safe for
// concurrent use.
type Document struct {
	name string
	text []byte
	// lines returns where lines begin; problems alone need it.
	lines func() []int

	Data      document.Value
	Order     []document.Value
	Merge     string
	Overrides document.Value

	// section is muster or ccm, empty in a document of data alone.
	section   string
	Fail      document.Value
	Pre, Post document.Value
	Resources []document.Value
	// JetFile is the path of the template that renders the resources instead.
	JetFile document.Value
	// problems are those of its structure.
	problems model.Problems
}

// Empty returns a document that holds nothing. name is what its places are called.
func Empty(name string) *Document { return empty(name, nil) }

func empty(name string, text []byte) *Document {
	return &Document{name: name, text: text, lines: sync.OnceValue(func() []int { return startsOfLines(text) }), Merge: MergeFirst}
}

// Parse reads a manifest in YAML or JSON. name is what its places are called.
// It fails for what makes a document unreadable (syntax, encoding, size, depth,
// aliases, duplicate keys); unknown keys and the like are kept and reported by
// Resolve, together with everything else that is wrong. The error is
// model.Problems. data must not be changed afterwards.
//
// Texts are kept byte for byte as YAML defines them: line breaks of plain,
// folded and literal texts are read as \n however the file ends its lines, and
// a text that must hold \r is written in double quotes. limit is in bytes.
func Parse(name string, data []byte, limit int64) (*Document, error) {
	root, err := readMapping(name, data, limit, "a manifest", "it begins with `muster:` or `data:`")
	if err != nil {
		return nil, err
	}

	return newDocument(name, data, root), nil
}

// readMapping reads a document that must be a mapping; what and hint say what it is.
func readMapping(name string, data []byte, limit int64, what, hint string) (document.Value, error) {
	root, problems := document.Read(name, data, limit)
	switch {
	case len(problems) > 0:
		return root, Report(problems)
	case root.Kind == document.Null:
		return root, model.ProblemAt(root.Pos, "", "the document is empty")
	case root.Kind != document.Map:
		return root, model.ProblemAt(root.Pos, hint, "%s must be a mapping, not %s", what, root.Kind)
	default:
		return root, nil
	}
}

// Name is what the document's places are called.
func (d *Document) Name() string { return d.name }

// Problems are those of the document's structure: unknown keys, values of the
// wrong kind. Resolve reports them too.
func (d *Document) Problems() model.Problems { return slices.Clone(d.problems) }

// HasResources reports whether the document has a muster (or ccm) section.
func (d *Document) HasResources() bool { return d.section != "" }

func newDocument(name string, text []byte, root document.Value) *Document {
	d := empty(name, text)
	if v, ok := root.Get("protocol"); ok && v.IsScalar() {
		d.problems.Add(v.Pos, "take the manifest within it", "this is a document of protocol %s, not a manifest", v.Text)
		return d
	}
	for _, e := range root.Entries {
		switch e.Key {
		case "data":
			d.Data = d.expect(e, document.Map)
		case "hierarchy":
			d.hierarchy(e)
		case "overrides":
			d.Overrides = d.expect(e, document.Map)
			for _, o := range d.Overrides.Entries {
				d.expect(o, document.Map)
			}
		case "muster", "ccm":
			if d.section != "" {
				d.problems.Add(e.Pos, "`ccm` is another name of `muster`: keep one of them", "`%s` and `%s` exclude each other", d.section, e.Key)
				continue
			}
			d.section = e.Key
			d.body(e)
		default:
			d.unknownAtTop(e)
		}
	}

	return d
}

// expect returns a value that must be of a kind; nothing is taken for an empty one.
func (d *Document) expect(e document.Entry, kind document.Kind) document.Value {
	if e.Value.Kind != kind && e.Value.Kind != document.Null {
		d.problems.Add(e.Value.Pos, "", "`%s` must be %s, not %s", e.Key, kind, e.Value.Kind)
		return document.Value{Kind: document.Null, Pos: e.Value.Pos}
	}

	return e.Value
}

// topKeys and sectionKeys return the keys of a manifest, and of its section muster.
func topKeys() []string { return []string{"data", "hierarchy", "overrides", "muster", "ccm"} }

func sectionKeys() []string {
	return []string{"fail_on_error", "pre_message", "post_message", KeyJetFile, "resources"}
}

// unknownAtTop reports a key that a manifest has elsewhere, or not at all.
func (d *Document) unknownAtTop(e document.Entry) {
	switch {
	case slices.Contains(sectionKeys(), e.Key):
		d.problems.Add(e.Pos, "put it below `muster:`, indented", "unknown key `%s`", e.Key)
	case document.Nearest(e.Key, topKeys()) == "":
		d.problems.Add(e.Pos, "values are below `data:`; the resources of a manifest are items of `resources:` below `muster:`", "unknown key `%s`", e.Key)
	default:
		d.unknown(e, "", topKeys())
	}
}

// unknownInSection is unknownAtTop for the section muster.
func (d *Document) unknownInSection(e document.Entry, section string) {
	if slices.Contains(topKeys(), e.Key) {
		d.problems.Add(e.Pos, "put it at the top level, beside `"+section+":`", "unknown key `%s` in `%s`", e.Key, section)
		return
	}
	d.unknown(e, section, sectionKeys())
}

func (d *Document) unknown(e document.Entry, where string, known []string) {
	if where != "" {
		where = " in `" + where + "`"
	}
	d.problems.Append(document.Unknown(e.Pos, "key", e.Key, where, known))
}

func (d *Document) hierarchy(h document.Entry) {
	for _, e := range d.expect(h, document.Map).Entries {
		switch e.Key {
		case "order":
			d.Order = d.expect(e, document.List).Items
		case "merge":
			if !e.Value.IsScalar() {
				d.problems.Add(e.Value.Pos, "one of first, deep", "`merge` cannot be %s", e.Value.Kind)
				continue
			}
			if e.Value.Text != MergeFirst && e.Value.Text != MergeDeep {
				d.problems.Add(e.Value.Pos, "one of first, deep", "`merge` cannot be %q", e.Value.Text)
				continue
			}
			d.Merge = e.Value.Text
		default:
			d.unknown(e, h.Key, []string{"order", "merge"})
		}
	}
}

func (d *Document) body(section document.Entry) {
	for _, e := range d.expect(section, document.Map).Entries {
		switch e.Key {
		case "fail_on_error":
			d.Fail = e.Value
		case "pre_message":
			d.Pre = e.Value
		case "post_message":
			d.Post = e.Value
		case KeyJetFile:
			if d.JetFile = e.Value; !e.Value.IsScalar() && e.Value.Kind != document.Null {
				d.problems.Add(e.Value.Pos, "for example resources_jet_file: resources.jet", "`%s` must be text, not %s", e.Key, e.Value.Kind)
			}
		case "resources":
			d.Resources = d.expect(e, document.List).Items
		default:
			d.unknownInSection(e, section.Key)
		}
	}
	if d.JetFile.Text != "" && len(d.Resources) > 0 {
		d.problems.Add(d.JetFile.Pos, "keep one of them", "`resources` and `%s` exclude each other", KeyJetFile)
	}
}

// ParseData is Parse for a source of data, which may be a mapping without a
// data key: then all of it is data.
func ParseData(name string, data []byte, limit int64) (*Document, error) {
	root, err := readMapping(name, data, limit, "data", "write key: value")
	if err != nil {
		return nil, err
	}
	isDocument := false
	for _, e := range root.Entries {
		switch e.Key {
		case "muster", "ccm":
			return nil, model.ProblemAt(e.Pos, "put it under `data:`, or remove it", "a source of data has no section `%s`", e.Key)
		case "data", "hierarchy", "overrides":
			isDocument = true
		}
	}
	if !isDocument {
		d := empty(name, data)
		d.Data = root
		return d, nil
	}

	return newDocument(name, data, root), nil
}
