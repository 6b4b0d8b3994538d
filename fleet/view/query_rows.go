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

// QueryAnswer is the answer to a query.
type QueryAnswer struct {
	Columns []string `json:"columns"`
	// Rows contain values in the order of Columns. Matching is the number of rows without a limit.
	Rows     []RowValues `json:"rows"`
	Matching int         `json:"matching"`
	// Incomplete lists the reasons why rows may be missing.
	Incomplete []string `json:"incomplete"`
	// Warnings name facts, labels, groups, packages and columns that no node has, and probable
	// mistakes in the expression.
	Warnings []string `json:"warnings,omitempty"`
}

// RowValues are the values of one row.
type RowValues struct {
	columns []string
	All     []any
}

// MarshalJSON returns an object with the columns in order.
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

// RowOrder is the sort column and the limit of rows.
type RowOrder struct {
	// Sort is a column, empty to keep the order of the rows.
	Sort    string
	Reverse bool
	// Limit is the maximum number of rows, 0 for all.
	Limit int
}

// SelectRows returns columns of rows in an order.
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

// FirstRows returns the first rows in an order. It sorts the rows in place.
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

// CountRows returns the number of rows with equal values in some columns, the largest first, unless the order
// uses one of these columns.
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

// compare orders two values of a column. Missing values come first.
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

// compareTexts orders states by severity and versions by age, as on the dashboard.
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
