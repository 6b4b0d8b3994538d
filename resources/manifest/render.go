package manifest

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/redact"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
)

// Render returns the manifest with everything resolved, as YAML that muster applies again. Secrets and
// the values of sensitive resources are redacted. Deferred expressions stay as they are, with the data
// that they may need. Excluded resources stay excluded. The same input returns the same bytes.
func (r *Resolved) Render() ([]byte, error) {
	root := document.Value{Kind: document.Map}
	section := "muster"
	if r.ccm && slices.ContainsFunc(r.values, callsTemplateLater) {
		section = "ccm" // the section selects the language of template
	}
	if len(r.Data) > 0 && slices.ContainsFunc(r.own, func(res *resource.Resource) bool { return res.ResolveDeferred != nil }) {
		data, err := expression.ToValue(r.Data, model.Position{})
		if err != nil {
			return nil, err
		}
		root.Entries = append(root.Entries, entry("data", literal(data, redact.Redactor{})))
	}
	root.Entries = append(root.Entries, entry(section, r.body()))

	return encode(root)
}

func callsTemplateLater(properties document.Value) bool {
	found := false
	properties.EachScalar(func(v *document.Value) {
		found = found || v.Deferred && strings.Contains(v.Text, expression.NameTemplate)
	})

	return found
}

func entry(key string, v document.Value) document.Entry { return document.Entry{Key: key, Value: v} }

func text(s string) document.Value { return document.Value{Kind: document.String, Text: s} }

func (r *Resolved) body() document.Value {
	body := document.Value{Kind: document.Map}
	if r.FailOnError {
		body.Entries = append(body.Entries, entry("fail_on_error", document.Value{Kind: document.Bool, Text: "true"}))
	}
	switch r.Flapping {
	case model.DefaultFlapping:
	case model.Flapping{}:
		body.Entries = append(body.Entries, entry("flapping", text("off")))
	default:
		limits := []document.Entry{
			entry("repairs", document.Value{Kind: document.Number, Text: strconv.Itoa(r.Flapping.Repairs)}),
			entry("within", text(r.Flapping.Within.String())),
		}
		body.Entries = append(body.Entries, entry("flapping", document.Value{Kind: document.Map, Entries: limits}))
	}
	if r.Limit > 0 {
		body.Entries = append(body.Entries, entry("limit", document.Value{Kind: document.Number, Text: strconv.Itoa(r.Limit)}))
	}
	if r.PreMessage != "" {
		body.Entries = append(body.Entries, entry("pre_message", literal(text(r.PreMessage), redact.Redactor{})))
	}
	if r.PostMessage != "" {
		body.Entries = append(body.Entries, entry("post_message", literal(text(r.PostMessage), redact.Redactor{})))
	}
	list := document.Value{Kind: document.List}
	for i, res := range r.own {
		block := document.Value{Kind: document.Map, Entries: []document.Entry{entry(res.Type.Name, rendered(res, r.values[i]))}}
		list.Items = append(list.Items, block)
	}
	body.Entries = append(body.Entries, entry("resources", list))

	return body
}

// maxKeyLength is the maximum length of a simple key in YAML. The parser allows 1024 bytes with
// quotes and escapes.
const maxKeyLength = 200

// rendered returns a resource in the list form, or in the single form if its name has another
// meaning in the list form.
func rendered(res *resource.Resource, properties document.Value) document.Value {
	out := document.Value{Kind: document.Map}
	// A resource that only contains a secret is shown with the secret redacted.
	sensitive, _ := properties.Get("sensitive")
	declared := res.Meta().Sensitive && sensitive.Kind != document.Null
	var own redact.Redactor
	if s, ok := res.Spec.(resource.Secretive); ok {
		own = redact.New(s.Secrets()...)
	}
	for _, e := range properties.Entries {
		p, _ := res.Type.Property(e.Key)
		switch {
		case e.Key == keyControl, e.Key == keyName:
			continue
		case p.Literal:
		case declared && !p.Common && (e.Value.Secret || e.Value.Kind == document.String || e.Value.Kind == document.List || e.Value.Kind == document.Map):
			// Only texts may reveal the content of a sensitive resource.
			e.Value = text(model.Redacted)
		default:
			e.Value = literal(e.Value, own)
		}
		out.Entries = append(out.Entries, entry(expression.LiteralText(e.Key), e.Value))
	}
	if res.Excluded != "" {
		never := document.Value{Kind: document.Map, Entries: []document.Entry{entry("if", text("false"))}}
		out.Entries = append(out.Entries, entry(keyControl, never))
	}
	name := expression.LiteralText(res.Meta().Name)
	if name == keyDefaults || len(name) > maxKeyLength {
		out.Entries = append([]document.Entry{entry(keyName, text(name))}, out.Entries...)
		return out
	}
	if len(out.Entries) == 0 {
		out.Kind = document.Null
	}
	item := document.Value{Kind: document.Map, Entries: []document.Entry{entry(name, out)}}

	return document.Value{Kind: document.List, Items: []document.Value{item}}
}

// literal returns a value that resolves to itself: texts are escaped, secrets are redacted, and
// deferred expressions stay.
func literal(v document.Value, own redact.Redactor) document.Value {
	v.Text = own.Redact(v.Text)
	switch {
	case v.Secret:
		return text(model.Redacted)
	case v.Kind == document.String && !v.Deferred:
		v.Text = expression.LiteralText(v.Text)
	}
	items := make([]document.Value, len(v.Items))
	for i := range v.Items {
		items[i] = literal(v.Items[i], own)
	}
	entries := make([]document.Entry, len(v.Entries))
	for i, e := range v.Entries {
		entries[i] = entry(expression.LiteralText(e.Key), literal(e.Value, own))
	}
	v.Items, v.Entries = items, entries

	return v
}

// encode writes a value as YAML. It uses only plain words, literal blocks and double quotes, so
// that every value reads back byte for byte.
func encode(v document.Value) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(node(v)); err != nil {
		return nil, err
	}

	return b.Bytes(), e.Close()
}

func node(v document.Value) *yaml.Node {
	switch v.Kind {
	case document.Null:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	case document.List:
		out := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v.Items {
			out.Content = append(out.Content, node(item))
		}
		return out
	case document.Map:
		out := &yaml.Node{Kind: yaml.MappingNode}
		for _, e := range v.Entries {
			out.Content = append(out.Content, scalar(e.Key, false), node(e.Value))
		}
		return out
	case document.String:
		return scalar(v.Text, isLiteral(v.Text))
	default:
		if plainNumber.MatchString(v.Text) {
			return &yaml.Node{Kind: yaml.ScalarNode, Value: v.Text}
		}
		return scalar(v.Text, false)
	}
}

var plainNumber = regexp.MustCompile(`^[A-Za-z0-9+._-]+$`)

func scalar(s string, literal bool) *yaml.Node {
	out := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
	switch {
	case !utf8.ValidString(s):
		out.Tag, out.Value = "!!binary", base64.StdEncoding.EncodeToString([]byte(s))
		out.Style |= yaml.TaggedStyle
	case literal:
		out.Style = yaml.LiteralStyle
	case isWord(s):
		out.Style = 0
	}

	return out
}

func isLiteral(s string) bool {
	if !strings.Contains(s, "\n") || strings.TrimSpace(s) == "" || strings.ContainsAny(s[:1], " \t\n") || !utf8.ValidString(s) {
		return false
	}

	return !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsGraphic(r) || r == '\ufeff' })
}

var plainWord = regexp.MustCompile(`^[A-Za-z/_][A-Za-z0-9/_.+-]*( [A-Za-z0-9/_.+-]+)*$`)

func isWord(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		return false
	default:
		return plainWord.MatchString(s)
	}
}
