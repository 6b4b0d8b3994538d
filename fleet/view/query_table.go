package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/document"
)

// ErrColumn means that a table does not have a column.
var ErrColumn = errors.New("unknown column")

// QueryRow is a row of values with types that Text formats; nil for missing values.
type QueryRow interface {
	Value(column string) any
}

// QueryTable describes the columns of a query.
type QueryTable struct {
	// Columns are the names in the order of the documentation. Default are the columns that are shown by
	// default.
	Columns, Default []string
	// Nested are the columns with nested values, as in labels.rack, each with an example.
	Nested map[string]string
}

// CheckColumns checks the names of columns. The error wraps ErrColumn and suggests similar names.
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

// hint suggests columns similar to an unknown name.
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

// UsesColumn reports whether one of the columns has a name or is nested in it.
func UsesColumn(columns []string, name string) bool {
	return slices.ContainsFunc(columns, func(c string) bool { return c == name || strings.HasPrefix(c, name+".") })
}
