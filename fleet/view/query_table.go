package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/document"
)

// ErrColumn is a column that a table does not have.
var ErrColumn = errors.New("unknown column")

// Row is one thing with its values, of types that Text knows; nil for what is missing.
type QueryRow interface {
	Value(column string) any
}

// Table is what the rows of a query can have.
type QueryTable struct {
	// Columns are the names, in the order of the documentation, Default those that are shown
	// where nobody says which.
	Columns, Default []string
	// Nested are the columns that a path within can follow, as in labels.rack, each with an example.
	Nested map[string]string
}

// CheckColumns checks the names of columns. The error wraps ErrColumn and says what may be meant.
func (t QueryTable) CheckColumns(columns []string) error {
	for _, c := range columns {
		name, path, isPath := strings.Cut(c, ".")
		example, isNested := t.Nested[name]
		switch {
		case isPath && isNested && path != "":
		case !isPath && slices.Contains(t.Columns, c):
		case isPath && !isNested && slices.Contains(t.Columns, name):
			return fmt.Errorf("%w %q: %s has nothing within", ErrColumn, c, name)
		case isNested:
			return fmt.Errorf("%w %q: write what of it, such as %s", ErrColumn, c, example)
		default:
			return fmt.Errorf("%w %q: %s", ErrColumn, c, t.hint(c))
		}
	}

	return nil
}

// hint says what may be meant by the name of a column that there is not.
func (t QueryTable) hint(column string) string {
	known := slices.Clone(t.Columns)
	for name := range t.Nested {
		if !slices.Contains(known, name) {
			known = append(known, name+".…")
		}
	}
	if near := document.Nearest(column, known); near != "" {
		return "did you mean " + near + "?"
	}

	return "the columns are " + strings.Join(known, ", ")
}

// Uses reports whether one of some columns is a name, or within it.
func UsesColumn(columns []string, name string) bool {
	return slices.ContainsFunc(columns, func(c string) bool { return c == name || strings.HasPrefix(c, name+".") })
}
