package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
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

// compareValues orders two values of a column. Missing values come first.
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

// compareTextValues orders states by severity and versions by age, as on the dashboard.
func compareTextValues(column, a, b string) int {
	switch column {
	case "state":
		return cmp.Compare(Severity(fleet.Status(a)), Severity(fleet.Status(b)))
	case "version":
		return compareVersions(a, b)
	default:
		return cmp.Compare(a, b)
	}
}

// compareVersions orders versions by age if both are valid, and otherwise as texts.
func compareVersions(a, b string) int {
	switch {
	case IsOlder(a, b):
		return -1
	case IsOlder(b, a):
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

// ValueText returns a value for users: times in the local time zone, durations with a unit.
func ValueText(v any) string {
	switch v := v.(type) {
	case time.Time:
		if v.IsZero() {
			return "-"
		}
		return v.Local().Format(model.TimeFormat)
	case time.Duration:
		if v == 0 {
			return "-"
		}
		return model.ShortDuration(v)
	}
	if text := ValueCSV(v); text != "" {
		return text
	}

	return "-"
}

// ValueCSV returns a value as in JSON, without quotes around texts. Lists and labels are on one line.
func ValueCSV(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case time.Duration:
		return strconv.FormatInt(int64(v), 10)
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return v.UTC().Format(time.RFC3339Nano)
	case []string:
		return strings.Join(v, ",")
	case map[string]string:
		var all []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, key+"="+v[key])
		}
		return strings.Join(all, ",")
	case []any, map[string]any:
		text, err := json.Marshal(v)
		if err != nil {
			return err.Error()
		}
		return string(text)
	default:
		return fmt.Sprint(v)
	}
}

// IsTextValue reports whether a value is free text, which a spreadsheet may evaluate as a formula.
func IsTextValue(v any) bool {
	switch v.(type) {
	case string, []string, map[string]string, []any, map[string]any:
		return true
	default:
		return false
	}
}

// QueryNode is a node as a row, with the fields of the JSON API and of target expressions.
type QueryNode struct {
	NodeRow
	Known    model.Node
	Statuses []fleet.RolloutStatus
	// Facts are nil if they are unknown.
	Facts model.Facts
}

// QueryNodes returns a row without facts for each node.
func QueryNodes(nodes []model.Node, assigned *fleet.Assigned) []QueryNode {
	rows := make([]QueryNode, len(nodes))
	for i, n := range nodes {
		statuses := assigned.Statuses(n)
		node := NewNode(n, statuses, assigned)
		rows[i] = QueryNode{NodeRow: RowOf(&node), Known: n, Statuses: statuses}
	}

	return rows
}

// NodeTable is the table of nodes.
func NodeTable() QueryTable {
	return QueryTable{
		Columns: []string{"node", "host", "version", "groups", "labels", "state", "since", "reason", "manifests", "paused", "message", "heard", "started", "outbox", "clock"},
		Default: []string{"node", "state", "version", "heard", "groups", "reason"},
		Nested:  map[string]string{"labels": "labels.rack", "facts": "facts.host.info.platform", "manifest": "manifest.motd.revision", "manifests": "manifests.failed"},
	}
}

// nodeColumns return the values of the columns; path is the rest of the name of a nested column.
var nodeColumns = map[string]func(n *QueryNode, path string) any{
	"node":      func(n *QueryNode, _ string) any { return n.Node },
	"host":      func(n *QueryNode, _ string) any { return n.Host },
	"version":   func(n *QueryNode, _ string) any { return n.Version },
	"groups":    func(n *QueryNode, _ string) any { return n.Groups },
	"labels":    func(n *QueryNode, path string) any { return labelValue(n.Labels, path) },
	"state":     func(n *QueryNode, _ string) any { return string(n.State) },
	"since":     func(n *QueryNode, _ string) any { return n.Since },
	"reason":    func(n *QueryNode, _ string) any { return n.Reason },
	"manifests": func(n *QueryNode, path string) any { return tallyValue(n.Tally, path) },
	"manifest":  func(n *QueryNode, path string) any { return n.manifest(path) },
	"facts":     func(n *QueryNode, path string) any { return factValue(n.Facts, path) },
	"paused":    func(n *QueryNode, _ string) any { return n.Known.Paused != nil },
	"message":   func(n *QueryNode, _ string) any { return n.Known.Message },
	"heard":     func(n *QueryNode, _ string) any { return n.Heard },
	"started":   func(n *QueryNode, _ string) any { return n.Known.Started },
	"outbox":    func(n *QueryNode, _ string) any { return n.Outbox },
	"clock":     func(n *QueryNode, _ string) any { return n.Known.Clock.Offset.Std().Seconds() },
}

// Value returns a value of the node.
func (n QueryNode) Value(column string) any {
	name, path, _ := strings.Cut(column, ".")
	if value := nodeColumns[name]; value != nil {
		return value(&n, path)
	}

	return nil
}

// manifest returns a value of a manifest on the node, as in target expressions: the status if no field
// follows the name.
func (n *QueryNode) manifest(path string) any {
	name, property, _ := strings.Cut(path, ".")
	m := targets.ManifestsOf(n.Statuses)(name)
	switch property {
	case "", "status":
		return m.Status
	case "revision":
		return m.Revision
	case "outcome":
		return m.Outcome
	default:
		return nil
	}
}

func labelValue(all map[string]string, name string) any {
	if name == "" {
		return all
	}
	if value, has := all[name]; has {
		return value
	}

	return nil
}

func tallyValue(t fleet.Tally, name string) any {
	counts := map[string]any{"targets": t.Targets}
	for status, n := range t.Counts() {
		counts[strings.ReplaceAll(string(status), "-", "_")] = n
	}
	if name == "" {
		return counts
	}

	return counts[name]
}

func factValue(facts model.Facts, path string) any {
	var at any = map[string]any(facts)
	for name := range strings.SplitSeq(path, ".") {
		within, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = within[name]
	}

	return at
}

// PackageTable returns the table of packages.
func PackageTable() QueryTable {
	return QueryTable{Columns: targets.PackageNames(), Default: targets.PackageNames()}
}

// MaxPackages is the maximum number of rows of an answer.
const MaxPackages = 1_000_000

// PackageMatches are the packages that match an expression.
type PackageMatches struct {
	Rows []targets.Package
	// Unstored are the nodes without an inventory, Unreadable the nodes with an unreadable inventory.
	// The expression fails for a package of the nodes in Undecided. All are sorted.
	Unstored, Unreadable, Undecided []string
	// Partial has the reason of each incomplete inventory, by node.
	Partial map[string]string
	// Full reports whether more than MaxPackages match.
	Full bool
}

// MatchPackages evaluates an expression for the packages of some nodes, and adds the packages to unknown. The error is the
// error of all, or wraps target.ErrEnded.
func MatchPackages(run *targets.RowEvaluator[targets.Package], unknown *targets.Finder, nodes []string, all iter.Seq2[model.Inventory, error]) (out PackageMatches, err error) {
	missing := map[string]bool{}
	for _, n := range nodes {
		missing[n] = true
	}
	out.Partial = map[string]string{}
	for i, err := range all {
		if err != nil {
			return out, err
		}
		if !missing[i.Node] {
			continue // the node is not selected, or stored its inventory again during the read
		}
		delete(missing, i.Node)
		if i.Unreadable == "" {
			unknown.AddPackages(i.Packages)
		}
		if err := out.add(run, i); err != nil {
			return out, err
		}
	}
	for n := range missing {
		out.Unstored = append(out.Unstored, n)
	}
	for _, names := range [][]string{out.Unstored, out.Unreadable, out.Undecided} {
		slices.Sort(names)
	}
	slices.SortStableFunc(out.Rows, func(a, b targets.Package) int { return compareValues("node", a.Node, b.Node) })

	return out, nil
}

func (m *PackageMatches) add(run *targets.RowEvaluator[targets.Package], i model.Inventory) error {
	if i.Unreadable != "" {
		m.Unreadable = append(m.Unreadable, i.Node)
		return nil
	}
	if i.Incomplete != "" {
		m.Partial[i.Node] = i.Incomplete
	}
	undecided := false
	for _, p := range i.Packages {
		row := targets.Package{Node: i.Node, Name: p.Name, Version: p.Version, Arch: p.Arch, Manager: p.Manager}
		is, err := run.Match(row)
		switch {
		case errors.Is(err, targets.ErrEnded):
			return fmt.Errorf("packages of node %s: %w", i.Node, err)
		case err != nil:
			undecided = true
		case !is:
		case len(m.Rows) == MaxPackages:
			m.Full = true
		default:
			m.Rows = append(m.Rows, row)
		}
	}
	if undecided {
		m.Undecided = append(m.Undecided, i.Node)
	}

	return nil
}

// ResultTable is the table of transactions, and of resources.
func ResultTable() QueryTable {
	return QueryTable{Columns: targets.ResultNames(), Default: []string{"time", "node", "manifest", "resource", "outcome", "cause", "text"}}
}

// ResultOf returns the result in the report of a transaction.
func ResultOf(r model.Report) (targets.Result, error) {
	var t model.Transaction
	if err := json.Unmarshal(r.Data, &t); err != nil {
		return targets.Result{}, fmt.Errorf("transaction %s of node %s: %w", r.ID, r.Node, err)
	}
	out := targets.Result{
		Node: r.Node, Time: r.Time, Manifest: r.Manifest, Revision: r.Revision, Type: t.Type, Name: t.Name, Resource: t.Ref().String(), Provider: t.Provider, Alias: t.Alias,
		Outcome: string(r.Outcome), Cause: string(r.Cause), Error: strings.Join(t.Errors, "\n"), Text: DescribeTransaction(&t), Noop: t.Noop, Duration: t.Duration,
		RunID: r.RunID, CorrelationID: r.CorrelationID, ID: r.ID,
	}
	if d := t.Drift; d != nil {
		out.Drift, out.Drifted, out.Latency = t.Repaired(), d.From, d.Latency
	}

	return out, nil
}
