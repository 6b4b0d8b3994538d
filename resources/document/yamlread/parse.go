package yamlread

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"gopkg.in/yaml.v3"
)

// Parse parses a YAML text into nodes of the parser.
func Parse(data []byte) (*yaml.Node, error) {
	root, _, err := parse(data)
	if err == nil && root == nil {
		err = io.ErrUnexpectedEOF
	}

	return root, err
}

// parse returns the content of data, or nil, and a second document if there is one.
func parse(data []byte) (root, second *yaml.Node, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var documents [2]yaml.Node
	for i := range documents {
		switch err := decodeNode(dec, &documents[i]); {
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

// decodeNode is Decode that recovers panics, because some inputs make the parser panic, and no
// input may stop an agent.
func decodeNode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()

	return dec.Decode(n)
}
