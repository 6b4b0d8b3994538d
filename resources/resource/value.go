package resource

import "github.com/musterfleet/muster/resources/document"

// Value and Entry are the values of a document that properties are decoded from.
type (
	// Value is document.Value.
	Value = document.Value
	// Entry is document.Entry.
	Entry = document.Entry
	// Kind is document.Kind.
	Kind = document.Kind
)

// The kinds of a Value.
const (
	Null   = document.Null
	Bool   = document.Bool
	Number = document.Number
	String = document.String
	List   = document.List
	Map    = document.Map
)
