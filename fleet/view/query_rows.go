package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet"
)

// Answer is the answer to a query.
type QueryAnswer struct {
	Columns []string `json:"columns"`
	// Rows have values by their columns, Matching is how many rows there are without a limit.
	Rows     []RowValues `json:"rows"`
	Matching int         `json:"matching"`
	// Incomplete is why rows may be missing.
	Incomplete []string `json:"incomplete"`
	// Warnings name facts, labels, groups, packages and columns that no node has, and probable
	// mistakes in the expression.
	Warnings []string `json:"warnings,omitempty"`
}

// Values are those of one row.
type RowValues struct {
	columns []string
	All     []any
}

// MarshalJSON returns an object with the columns in their order.
func (v RowValues) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, c := range v.columns {
		key, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(v.All[i])
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c, err)
		}
		if at, ok := v.All[i].(time.Time); ok && at.IsZero() {
			value = []byte("null")
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(append(append(key, ':'), value...))
	}
	b.WriteByte('}')

	return b.Bytes(), nil
}

// Order is how rows are sorted and cut.
type RowOrder struct {
	// Sort is a column, empty for the order in which the rows are.
	Sort    string
	Reverse bool
	// Limit is the most rows, 0 for all.
	Limit int
}

// Select returns columns of rows in an order.
func SelectRows[R QueryRow](rows []R, columns []string, o RowOrder) QueryAnswer {
	out := QueryAnswer{Columns: columns, Rows: []RowValues{}, Matching: len(rows), Incomplete: []string{}}
	for _, r := range FirstRows(rows, o) {
		v := RowValues{columns, make([]any, len(columns))}
		for i, c := range columns {
			v.All[i] = r.Value(c)
		}
		out.Rows = append(out.Rows, v)
	}

	return out
}

// First returns the rows that an order has first. It sorts them in place.
func FirstRows[R QueryRow](rows []R, o RowOrder) []R {
	if o.Sort != "" {
		slices.SortStableFunc(rows, func(a, b R) int { return compareValues(o.Sort, a.Value(o.Sort), b.Value(o.Sort)) })
	}
	if o.Reverse {
		slices.Reverse(rows)
	}

	return limitRows(rows, o.Limit)
}

// ColumnCount is the column of Count.
const ColumnCount = "count"

// Count returns how many rows have the same values in some columns, the most first, unless the
// order has one of these columns.
func CountRows[R QueryRow](rows []R, columns []string, o RowOrder) QueryAnswer {
	groups := map[string]*RowValues{}
	var all []*RowValues
	for _, r := range rows {
		var key strings.Builder
		values := make([]any, len(columns), len(columns)+1)
		for i, c := range columns {
			values[i] = r.Value(c)
			fmt.Fprintf(&key, "%q ", ValueCSV(values[i]))
		}
		group := groups[key.String()]
		if group == nil {
			group = &RowValues{append(slices.Clone(columns), ColumnCount), append(values, 0)}
			groups[key.String()], all = group, append(all, group)
		}
		group.All[len(columns)] = group.All[len(columns)].(int) + 1
	}
	at := slices.Index(columns, o.Sort)
	slices.SortStableFunc(all, func(a, b *RowValues) int {
		if at >= 0 {
			return compareValues(o.Sort, a.All[at], b.All[at])
		}
		count := func(v *RowValues) int { return v.All[len(columns)].(int) }
		return cmp.Or(cmp.Compare(count(b), count(a)), compareValues(columns[0], a.All[0], b.All[0]))
	})
	if o.Reverse {
		slices.Reverse(all)
	}
	out := QueryAnswer{Columns: append(slices.Clone(columns), ColumnCount), Rows: []RowValues{}, Matching: len(all), Incomplete: []string{}}
	for _, v := range limitRows(all, o.Limit) {
		out.Rows = append(out.Rows, *v)
	}

	return out
}

func limitRows[T any](all []T, limit int) []T {
	if limit <= 0 {
		return all
	}

	return all[:min(limit, len(all))]
}

// compare orders two values of a column; what is missing comes first.
func compareValues(column string, a, b any) int {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return compareTextValues(column, x, y)
		}
	case time.Time:
		if y, ok := b.(time.Time); ok {
			return x.Compare(y)
		}
	}
	x, isNumber := numericValue(a)
	if y, ok := numericValue(b); ok && isNumber {
		return cmp.Compare(x, y)
	}
	if (a == nil) != (b == nil) {
		return map[bool]int{true: -1, false: 1}[a == nil]
	}

	return cmp.Compare(ValueCSV(a), ValueCSV(b))
}

// compareTexts orders states by how bad they are and versions by their age, as the dashboard does.
func compareTextValues(column, a, b string) int {
	switch {
	case column == "state":
		return cmp.Compare(Severity(fleet.Status(a)), Severity(fleet.Status(b)))
	case column == "version" && IsOlder(a, b):
		return -1
	case column == "version" && IsOlder(b, a):
		return 1
	default:
		return cmp.Compare(a, b)
	}
}

func numericValue(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	case time.Duration:
		return float64(v), true
	default:
		return 0, false
	}
}
