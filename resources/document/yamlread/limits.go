package yamlread

import "github.com/musterfleet/muster/model"

const (
	// MaxValues is how many values a document may hold.
	MaxValues = 1_000_000
	// MaxDepth is how deep it may be nested.
	MaxDepth = 100
)

// TooMany returns the problem of a document with more than MaxValues.
func TooMany(name string) model.Problem {
	return model.ProblemAt(model.Position{File: name}, "split it, or deliver large files beside the manifest, as source, in a bundle",
		"the document seems to hold more than the %d values that are allowed", MaxValues)[0]
}
