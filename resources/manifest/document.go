// Package manifest resolves a document into resources. It parses YAML or JSON, merges hierarchical
// data, evaluates expressions, decodes properties strictly and validates them. It reports all
// problems of a document at once, each with file, line, column and remedy, and changes nothing on
// the machine. Values that are known only during a run (outputs of other resources, files that a
// resource of the same manifest creates) are resolved by resource.Resource.ResolveDeferred.
//
// The package decides these points, which the formats leave open:
//
//   - A number that is not in its shortest form (0644, 1.10) is text to expressions, so it keeps
//     its form.
//   - Values of data can use Facts and Environ. Entries of hierarchy.order can also use Data: the
//     base data with the external data merged in.
//   - With merge first, the first match replaces the top-level keys that it sets. With deep, all
//     matches are merged in order: mappings are merged, lists are appended, and the last value wins.
//     External data are merged over both in the same way.
//   - The value of an expression is secret if the expression uses a secret, a mapping or list that
//     contains one, or all data. The values of a literal mapping are judged one by one.
//   - The result of a template is secret if its source uses a secret, or cannot be judged.
//   - The expressions of an excluded resource may fail, because the failure is often the reason for
//     the exclusion.
//   - A document over 16 MiB is rejected before parsing. Parsing stops at the first syntax error or
//     limit: a million values, 100 levels, or aliases that expand to more than 200,000 values.
package manifest

import (
	"bytes"
	"fmt"
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
	// comments returns the result of scanComments.
	comments func() (map[model.Position][]string, model.Problems)

	Data      document.Value
	Order     document.Value
	Merge     string
	Overrides document.Value

	// section is muster or ccm. It is empty in a document with data only.
	section string
	// settings are the settings of the section, a mapping.
	settings  document.Value
	Resources document.Value
	// JetFile is the path of a template that renders the resources.
	JetFile document.Value
	// problems are the problems of the structure.
	problems model.Problems
}

// IsCCM reports whether the section of the document is ccm.
func (d *Document) IsCCM() bool { return d.section == "ccm" }

func documentOf(name string, text []byte) *Document {
	d := &Document{name: name, text: text, lines: sync.OnceValue(func() []int { return startsOfLines(text) }), Merge: mergeFirst}
	d.comments = sync.OnceValues(func() (map[model.Position][]string, model.Problems) { return scanComments(d) })

	return d
}

// Parse reads a manifest in YAML or JSON. name is the file name in positions. It fails if the
// document is unreadable (syntax, encoding, size, depth, aliases, duplicate keys). Resolve reports
// unknown keys and other problems. The error is model.Problems. The caller must not change data.
//
// Texts keep their bytes as YAML defines them. Line breaks of plain, folded and literal texts are
// read as "\n". Only a text in double quotes can contain "\r".
func Parse(name string, data []byte) (*Document, error) {
	return parse(name, data, DefaultMaxBytes)
}

// ParseData is Parse for a source of data, which may be a mapping without a data key.
func ParseData(name string, data []byte) (*Document, error) {
	return parseData(name, data, DefaultMaxBytes)
}

func parse(name string, data []byte, limit int64) (*Document, error) {
	root, err := readMapping(name, data, limit, "a manifest", "it begins with `muster:` or `data:`")
	if err != nil {
		return nil, err
	}

	return newDocument(name, data, root), nil
}

// readMapping reads a document that must be a mapping. what and hint describe it in a problem.
func readMapping(name string, data []byte, limit int64, what, hint string) (document.Value, error) {
	root, problems := document.Read(name, data, limit)
	switch {
	case len(problems) > 0:
		return root, tidyProblems(problems)
	case root.Kind == document.Null:
		return root, model.ProblemAt(root.Pos, "", "the document is empty")
	case root.Kind != document.Map:
		return root, model.ProblemAt(root.Pos, hint, "%s must be a mapping, not %s", what, root.Kind)
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

func newDocument(name string, text []byte, root document.Value) *Document {
	d := documentOf(name, text)
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

// expect returns a value that must have a kind. It returns an empty value for null.
func (d *Document) expect(e document.Entry, kind document.Kind) document.Value {
	if e.Value.Kind == kind || e.Value.Kind == document.Null {
		return e.Value
	}
	d.problems.Add(e.Value.Pos, "", "`%s` must be %s, not %s", e.Key, kind, e.Value.Kind)

	return document.Value{}
}

// topKeys and sectionKeys return the keys of a manifest and of its section muster.
func topKeys() []string { return []string{"data", "hierarchy", "overrides", "muster", "ccm"} }

func sectionKeys() []string {
	return []string{"fail_on_error", "flapping", "limit", "pre_message", "post_message", keyJetFile, "resources"}
}

// unknownAtTop reports an unknown key. The hint names the right place of a key of another level.
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

func (d *Document) unknownInSection(e document.Entry) {
	if slices.Contains(topKeys(), e.Key) {
		d.problems.Add(e.Pos, "put it at the top level, beside `"+d.section+":`", "unknown key `%s` in `%s`", e.Key, d.section)
		return
	}
	if e.Key == "drift" {
		d.problems.Add(e.Pos, "set it on a resource, on all resources of a type with `defaults`, or on an assignment with muster fleet push --drift", "unknown key `drift` in `%s`", d.section)
		return
	}
	d.unknown(e, d.section, sectionKeys())
}

func (d *Document) unknown(e document.Entry, where string, known []string) {
	if where != "" {
		where = " in `" + where + "`"
	}
	d.problems.AddMade(func() model.Problem { return document.Unknown(e.Pos, "key", e.Key, where, known) })
}

func (d *Document) hierarchy(section document.Entry) {
	for _, e := range d.expect(section, document.Map).Entries {
		switch e.Key {
		case "order":
			d.Order = d.expect(e, document.List)
		case "merge":
			text := strings.ToLower(e.Value.Text)
			switch {
			case !e.Value.IsScalar():
				d.problems.Add(e.Value.Pos, "one of first, deep", "`merge` cannot be %s", e.Value.Kind)
			case text != mergeFirst && text != mergeDeep:
				d.problems.Add(e.Value.Pos, "one of first, deep", "`merge` cannot be %q", e.Value.Text)
			default:
				d.Merge = text
			}
		default:
			d.unknown(e, section.Key, []string{"order", "merge"})
		}
	}
}

func (d *Document) body(section document.Entry) {
	for _, e := range d.expect(section, document.Map).Entries {
		switch v := e.Value; e.Key {
		case "fail_on_error", "flapping", "limit", "pre_message", "post_message":
			d.settings.Entries = append(d.settings.Entries, e)
		case keyJetFile:
			if d.JetFile = v; !v.IsScalar() && v.Kind != document.Null {
				d.problems.Add(v.Pos, "for example resources_jet_file: resources.jet", "`%s` must be text, not %s", e.Key, v.Kind)
			}
		case "resources":
			d.Resources = d.expect(e, document.List)
		default:
			d.unknownInSection(e)
		}
	}
	if d.JetFile.Text != "" && len(d.Resources.Items) > 0 {
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
	for _, e := range root.Entries {
		switch e.Key {
		case "muster", "ccm":
			return nil, model.ProblemAt(e.Pos, "put it under `data:`, or remove it", "a source of data has no section `%s`", e.Key)
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

func startsOfLines(text []byte) []int {
	var out []int
	at := 0
	for line := range bytes.Lines(text) {
		out = append(out, at)
		at += len(line)
	}

	return out
}

func openers(s string, before int) int {
	n := 0
	for i := 0; i < before && i+1 < len(s); i++ {
		if s[i+1] == '{' && (s[i] == '$' || s[i] == '{') {
			n++
		}
	}

	return n
}

// tidyProblems sorts problems in the order of the document, removes duplicates (defaults repeat a
// mistake in every resource) and shortens long messages.
func tidyProblems(problems model.Problems) model.Problems {
	type identity struct {
		pos     model.Position
		message string
	}
	seen := make(map[identity]bool, len(problems))
	out := slices.DeleteFunc(problems.Sorted(), func(p model.Problem) bool {
		key := identity{p.Pos, p.Message}
		duplicate := seen[key] && !p.Pos.IsZero()
		seen[key] = true
		return duplicate
	})
	for i := range out {
		out[i].Message, out[i].Hint = clip(out[i].Message), clip(out[i].Hint)
	}

	out = model.Joined(out)
	for i := range out {
		if out[i].More > 0 {
			out[i].Message, out[i].Hint = fmt.Sprintf("%d more problems", out[i].More), ""
		}
	}

	return out
}

// longestMessage is the limit of a message in bytes.
const longestMessage = 400

// clip shortens a long message in the middle, and replaces line breaks.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) <= longestMessage {
		return s
	}
	head, tail := longestMessage/2, len(s)-longestMessage/2
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}

	return s[:head] + " … " + s[tail:]
}
