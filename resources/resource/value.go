package resource

import "github.com/musterfleet/muster/resources/document"

// Value and Entry are the values of a document that properties are decoded from.
type (
	Value = document.Value
	Entry = document.Entry
	Kind  = document.Kind
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
