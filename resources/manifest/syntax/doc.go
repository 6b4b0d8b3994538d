// Package syntax reads the structure of a manifest: its sections, the declared resources
// and the comments that check data, each with its place. Nothing is resolved.
package syntax
