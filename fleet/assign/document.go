package assign

import (
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest"
)

// sameContent reports whether two values of a key have the same Identity.
func sameContent(key string, a, b []byte) bool {
	id := Identity(key, a)

	return id != "" && id == Identity(key, b)
}

// Identity returns a digest that is equal for values with the same assignment, signed or not, at any time. It
// is empty for a broken envelope.
func Identity(key string, value []byte) string {
	v, problems := document.DecodeAssigned(key, value)
	content := v.Content
	if content == nil {
		return ""
	}
	if problems == nil && !v.Bare {
		v.Issued = time.Time{}
		var err error
		if content, err = model.EncodeAssignment(v.Assignment); err != nil {
			return ""
		}
	}

	return model.DigestOf(content)
}

// Readable returns a value of a key for users: a bare manifest unchanged, an assignment document as YAML with
// the lines of the manifest, a signed document without its envelope. A rejected value follows the reason,
// unchanged if it is no assignment.
func Readable(key string, value []byte) string {
	v, problems := document.DecodeAssigned(key, value)
	text := v.Content
	switch {
	case problems != nil && text == nil:
		text = value
	case problems == nil:
		problems = ofManifest(key, v)
		if readable, err := AssignmentYAML(v.Assignment); err == nil && !v.Bare {
			text = readable
		}
	}
	if len(problems) > 0 {
		return "# " + Invalid(problems) + "\n" + string(text)
	}

	return string(text)
}

// ProblemsOf returns the reasons why nodes reject an assignment, independent of the node; nil for none.
func ProblemsOf(key string, content []byte) model.Problems {
	v, problems := document.DecodeAssignedContent(key, content)
	if problems == nil {
		problems = ofManifest(key, v)
	}

	return problems
}

// AssignmentYAML returns an assignment document as YAML.
func AssignmentYAML(a model.Assignment) ([]byte, error) {
	encoded, err := model.EncodeAssignment(a)
	if err != nil {
		return nil, err
	}

	return document.YAML(encoded)
}

// ofManifest returns the problems of the manifest of a value that are independent of the node.
func ofManifest(key string, v document.Assigned) model.Problems {
	if v.Bundle != "" {
		return nil
	}
	doc, err := manifest.Parse(key, []byte(v.Manifest))
	if err == nil {
		return doc.Problems()
	}
	problems, ok := model.FindProblems(err)
	if !ok {
		problems.Add(model.Position{File: key}, "", "%v", err)
	}

	return problems
}

// Invalid describes in one line why nodes reject a value.
func Invalid(problems model.Problems) string {
	return "nodes reject this: " + strings.Join(strings.Fields(problems.Error()), " ")
}
