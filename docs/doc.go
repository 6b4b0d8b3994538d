// Package docs is the documentation. Code generates the tables of docs/types, the
// page of fleet commands and the OpenAPI document.
package docs

//go:generate go run ./internal/gen
//go:generate env MUSTER_WRITE_DOCS=1 go test -count=1 ../cmd/muster -run TestCommandReference
