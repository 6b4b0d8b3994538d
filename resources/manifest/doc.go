// Package manifest turns a document into resources: it parses YAML or JSON with
// the place of every value, resolves hierarchical data and expressions, and
// decodes and validates what comes out. Whatever is wrong with a document is
// reported at once, each problem with its file, line, column and remedy, and
// nothing of the machine has been touched by then. What can only be known later
// (outputs of other resources, a file that a resource of the same manifest
// makes) waits in resource.Resource.Late for its turn.
package manifest
