// Package docs is the documentation. The tables of docs/types are generated from
// the registered types, between comments that say so.
package docs

//go:generate go run ./internal/gen
