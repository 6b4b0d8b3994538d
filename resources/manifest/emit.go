package manifest

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/resources/document"
)

// encode writes a value as YAML. It has few forms, so that whatever it writes
// reads back byte for byte: plain words, literal blocks and double quotes.
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

// scalar makes a text: a literal block, a plain word, or one in double quotes.
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

// isLiteral reports whether a literal block keeps a text as it is.
func isLiteral(s string) bool {
	if !strings.Contains(s, "\n") || strings.TrimSpace(s) == "" || strings.ContainsAny(s[:1], " \t\n") || !utf8.ValidString(s) {
		return false
	}

	return strings.IndexFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && !isPlainRune(r) }) < 0
}

func isPlainRune(r rune) bool {
	return r == ' ' || unicode.IsGraphic(r) && r != '\ufeff'
}

var plainWord = regexp.MustCompile(`^[A-Za-z/_][A-Za-z0-9/_.+-]*( [A-Za-z0-9/_.+-]+)*$`)

// isWord reports whether a text needs no quotes.
func isWord(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		return false
	default:
		return plainWord.MatchString(s)
	}
}
