// Package document reads documents in YAML or JSON, with the place of every value

// and the place and remedy of every problem.
package document
