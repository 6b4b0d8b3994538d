package document

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/resources/document/yamlread"
)

// YAML converts a JSON document to YAML, and keeps the order of its keys.
func YAML(text []byte) ([]byte, error) {
	root, err := yamlread.Parse(escape(text))
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

// setStyle clears the JSON style of a node: the encoder then writes blocks. A text
// that is not shown as it is stays between quotes, where escapes are read as such, and
// the key that merges in YAML is none.
func setStyle(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && (n.Value == "<<" || strings.ContainsFunc(n.Value, isHidden)) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		setStyle(c)
	}
}

// escape escapes what JSON may hold as it is and YAML may not, or takes for the end
// of a line. In JSON it is part of a text, wherever it is.
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

// isHidden reports whether r is a control character but for line ends and tabs, a line
// end to YAML 1.1 alone, reorders text, or is none.
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
