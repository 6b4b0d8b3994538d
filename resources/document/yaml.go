package document

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/resources/document/yamlread"
)

// YAML converts a JSON document to YAML and keeps the order of its keys.
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
