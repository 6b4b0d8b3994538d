package document

import (
	"bytes"
	"encoding/json"
	"math"
	"path/filepath"
	"regexp"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document/yamlread"
)

// MaxBytes is the largest document that is read, unless who reads it says otherwise.
const MaxBytes = 16 << 20

// Read makes a value of a document in YAML or JSON, as Parse does.
func Read(name string, data []byte, limit int64) (Value, model.Problems) {
	n, problems := Parse(name, data, limit)

	return n.Value(), problems
}

// Parse reads a document in YAML or JSON; one whose name ends in .json must be
// JSON. name is what its places are called. A document that holds nothing is Null.
// Where there are problems the node is what is known of the rest: keys that are
// there twice, for one, do not hide what else is wrong.
func Parse(name string, data []byte, limit int64) (Node, model.Problems) {
	var none Node
	if int64(len(data)) > min(limit, math.MaxInt32) {
		return none, model.ProblemAt(model.Position{File: name}, "deliver large files beside the manifest, as source, in a bundle",
			"the document has %d bytes, more than the %d that are allowed", len(data), limit)
	}
	// Editors of other systems write a byte order mark. Positions do not count it.
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	named := filepath.Ext(name) == ".json" && len(trimmed) > 0
	isJSON := (named || len(trimmed) > 0 && trimmed[0] == '{') && json.Valid(data)
	breaks, problem := checkText(name, data, isJSON)
	switch {
	case problem != nil:
		return none, model.Problems{*problem}
	case isJSON:
		return readJSON(name, data)
	case named:
		return none, brokenJSON(name, data)
	}
	t, problems, ok := yamlread.Read(name, data, breaks)
	if !ok && looksLikeJSON.Match(data) {
		return none, brokenJSON(name, data)
	}

	return Node{tree: t}, problems
}

// looksLikeJSON is how JSON begins that was meant to be JSON.
var looksLikeJSON = regexp.MustCompile(`^\s*\{\s*"`)
