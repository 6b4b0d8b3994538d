// Package document reads documents in YAML or JSON, with the place of every
// value, and decodes them strictly: every problem is found at once, and reported
// with its place and remedy.
package document
