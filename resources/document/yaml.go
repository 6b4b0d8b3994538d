package document

import (
	"bytes"

	"gopkg.in/yaml.v3"
)

// YAML converts a JSON document to YAML, and keeps the order of its keys.
func YAML(text []byte) ([]byte, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, err
	}
	clearStyle(&node)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&node); err != nil {
		return nil, err
	}

	return b.Bytes(), e.Close()
}

// clearStyle clears the JSON style of a node: the encoder then writes blocks.
func clearStyle(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		clearStyle(c)
	}
}
