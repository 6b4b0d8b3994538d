package facts

import (
	"encoding/json"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// Parse reads a fact file: JSON when its name ends in .json, else YAML. It
// holds a mapping, or nothing. Numbers that JSON lacks, such as 0644, are text.
// Errors are model.Problems.
func Parse(name string, text []byte) (map[string]any, error) {
	v, problems := document.Read(name, text, maxFactFile)
	facts := map[string]any{}
	switch {
	case len(problems) > 0:
		return nil, problems
	case v.Kind == document.Null:
		return facts, nil
	case v.Kind != document.Map:
		return nil, model.ProblemAt(v.Pos, "write them as name: value", "facts must be a mapping, not %s", v.Kind)
	}
	if err := json.Unmarshal(v.AppendJSON(nil), &facts); err != nil {
		return nil, model.ProblemAt(model.Position{File: name}, "", "%v", err)
	}

	return facts, nil
}
