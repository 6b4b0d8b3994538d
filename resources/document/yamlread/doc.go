// Package yamlread reads documents in YAML: in pieces where they are large, as a
// whole otherwise, with the place and remedy of every problem.
package yamlread
