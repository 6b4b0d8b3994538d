// Package arch holds the rules of the architecture (docs/architecture.md) and
// of the style, and the test that the tree keeps them. The rules read parsed
// source: they know neither build tags nor the test cache of the go command.
package arch
