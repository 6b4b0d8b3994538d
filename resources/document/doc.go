// Package document reads documents in YAML or JSON, with the position of every value, and reports
// problems with their position and remedy.
package document
