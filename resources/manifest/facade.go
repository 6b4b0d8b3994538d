package manifest

import (
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/eval"
	"github.com/musterfleet/muster/resources/manifest/source"
	"github.com/musterfleet/muster/resources/manifest/syntax"
)

// What callers of a loader see of the packages below.
type (
	// Document is a parsed manifest.
	Document = syntax.Document
	// Source is a document that was fetched.
	Source = source.Source
	// ReadRegistrations returns the registrations that hold now.
	ReadRegistrations = eval.ReadRegistrations
)

// DefaultMaxBytes is the largest document that is parsed, unless Options say otherwise.
const DefaultMaxBytes = syntax.DefaultMaxBytes

// Parse reads a manifest in YAML or JSON. name is what its places are called.
// Unknown keys and the like are reported by Resolve. The error is model.Problems.
func Parse(name string, data []byte) (*Document, error) {
	return syntax.Parse(name, data, DefaultMaxBytes)
}

// ParseData is Parse for a source of data, which may be a mapping without a data key.
func ParseData(name string, data []byte) (*Document, error) {
	return syntax.ParseData(name, data, DefaultMaxBytes)
}

// ParseRequest reads an ensure request in JSON or YAML, with its properties for
// DecodeOne. The error is model.Problems.
func ParseRequest(name string, data []byte) (model.EnsureRequest, document.Value, error) {
	return syntax.ParseRequest(name, data)
}
