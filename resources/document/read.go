package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
)

// Read makes a value of a document in YAML or JSON; one whose name ends in .json
// must be JSON. name is what its places are called. A document that holds
// nothing is Null. Where there are problems the value is what is known of the
// rest: keys that are there twice, for one, do not hide what else is wrong.
func Read(name string, data []byte, limit int64) (Value, model.Problems) {
	var none Value
	if int64(len(data)) > limit {
		return none, model.ProblemAt(model.Position{File: name}, "deliver large files beside the manifest, as source, in a bundle",
			"the document has %d bytes, more than the %d that are allowed", len(data), limit)
	}
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	named := filepath.Ext(name) == ".json" && len(trimmed) > 0
	isJSON := (named || len(trimmed) > 0 && trimmed[0] == '{') && json.Valid(data)
	breaks, problem := checkText(name, data, isJSON)
	if problem != nil {
		return none, model.Problems{*problem}
	}
	if problems := checkMarks(name, data); problems != nil {
		return none, problems
	}
	switch {
	case isJSON:
		return readJSON(name, data)
	case named:
		return none, brokenJSON(name, data)
	}
	c := converter{name: name}
	if breaks {
		data, c.restore = hideBreaks(data)
	}
	data = asYAML11(data)
	if v, problems, ok := readInPieces(c, data, pieceSize); ok {
		return v, problems
	}
	node, problems := readNode(name, data)
	if problems != nil {
		if indented, changed := asIndented(data); changed {
			if again, still := readNode(name, indented); still == nil {
				node, problems = again, nil
			}
		}
	}
	if problems != nil && looksLikeJSON.Match(data) {
		return none, brokenJSON(name, data)
	}
	if problems != nil || node == nil {
		return Value{Pos: model.Position{File: name, Line: 1, Column: 1}}, problems
	}
	v := c.value(node, 0)

	return v, c.problems
}

// looksLikeJSON is how JSON begins that was meant to be JSON.
var looksLikeJSON = regexp.MustCompile(`^\s*\{\s*"`)

// readNode parses the one YAML document that data may hold, nil when it is empty.
func readNode(name string, data []byte) (*yaml.Node, model.Problems) {
	first, second, err := parse(data)
	switch {
	case err != nil:
		return nil, model.Problems{syntaxProblem(name, data, err)}
	case second != nil:
		return nil, model.ProblemAt(model.Position{File: name, Line: second.Line, Column: second.Column}, "give each document a file of its own",
			"a second document begins here")
	default:
		return first, nil
	}
}

// parse returns what data holds, nil where that is nothing, and the document behind it.
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

// decodeNode is Decode without its panics: the parser has some for input it
// did not foresee, and no input may stop an agent.
func decodeNode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()

	return dec.Decode(n)
}
