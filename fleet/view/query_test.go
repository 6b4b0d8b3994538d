package view_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

var queryNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func queryNode(name string, state fleet.Status, version string) view.QueryNode {
	return view.QueryNode{
		NodeRow:  view.NodeRow{Node: name, State: state, Version: version, Groups: []string{"web", "eu"}, Labels: map[string]string{"rack": "a3"}, Heard: queryNow, Tally: fleet.Tally{Failed: 2}},
		Known:    model.Node{NodeState: model.NodeState{Clock: model.ClockOffset{Offset: model.Offset(-7 * time.Second)}}},
		Statuses: []fleet.RolloutStatus{{Key: "group.web.motd", Status: fleet.StatusPending, Current: 7, Outcome: model.OutcomeChanged}},
		Facts:    model.Facts{"host": map[string]any{"os": "linux", "cpus": 4.0}},
	}
}

// TestEveryColumnHasAValue: each that a table has, and paths within.
func TestEveryColumnHasAValue(t *testing.T) {
	t.Parallel()
	n := queryNode("web01", fleet.StatusOK, "1.2.0")
	for _, c := range append(view.NodeTable().Columns, "labels.rack", "facts.host.os", "facts.host.cpus", "manifest.motd", "manifest.motd.revision", "manifest.motd.outcome", "manifests.failed") {
		if n.Value(c) == nil || view.NodeTable().CheckColumns([]string{c}) != nil {
			t.Errorf("node: %s is %v, %v", c, n.Value(c), view.NodeTable().CheckColumns([]string{c}))
		}
	}
	for _, c := range []string{"labels.none", "facts.none.x", "facts.host.os.x", "manifests.none", "manifest.motd.none"} {
		if v := n.Value(c); v != nil {
			t.Errorf("%s is %v", c, v)
		}
	}
	for _, c := range view.ResultTable().Columns {
		if (targets.Result{}).Value(c) == nil {
			t.Errorf("result: %s is missing", c)
		}
	}
	for c, want := range map[string]string{"xyzzy": "the columns are node", "labls.x": "did you mean labels", "facts": "such as facts.", "facts.": "write what of it", "state.x": "has nothing within", "": "the columns are"} {
		if err := view.NodeTable().CheckColumns([]string{"node", c}); !errors.Is(err, view.ErrColumn) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", c, err)
		}
	}
}

// TestColumnsAreNames: what expressions have names for is a column of that name.
func TestColumnsAreNames(t *testing.T) {
	t.Parallel()
	isFunction := func(name string) bool { return name == "group" || name == "package" || name == "age" }
	for _, name := range slices.DeleteFunc(targets.NodeNames(), isFunction) {
		if view.NodeTable().CheckColumns([]string{name}) != nil && view.NodeTable().Nested[name] == "" {
			t.Errorf("%s is no column of nodes", name)
		}
	}
}

// TestOrder: states by severity, versions by age, numbers by value, missing values first.
func TestOrder(t *testing.T) {
	t.Parallel()
	rows := func() []view.QueryNode {
		all := []view.QueryNode{queryNode("a", fleet.StatusOK, "1.9.0"), queryNode("b", fleet.StatusFailed, "1.10.0"), queryNode("c", fleet.StatusPending, "1.2.0")}
		all[0].Outbox, all[1].Outbox, all[2].Outbox = 9, 10, 0
		all[0].Facts, all[1].Heard = nil, queryNow.Add(-time.Hour)
		all[2].Facts = model.Facts{"host": map[string]any{"cpus": 16.0}}
		return all
	}
	for _, c := range []struct {
		order view.RowOrder
		want  string
	}{
		{view.RowOrder{}, "a b c"}, {view.RowOrder{Reverse: true}, "c b a"}, {view.RowOrder{Sort: "state"}, "b c a"}, {view.RowOrder{Sort: "version"}, "c a b"}, {view.RowOrder{Sort: "outbox"}, "c a b"},
		{view.RowOrder{Sort: "facts.host.cpus"}, "a b c"}, {view.RowOrder{Sort: "heard"}, "b a c"}, {view.RowOrder{Sort: "outbox", Reverse: true, Limit: 2}, "b a"}, {view.RowOrder{Limit: 9}, "a b c"},
	} {
		got := view.SelectRows(rows(), []string{"node"}, c.order)
		var names []string
		for _, r := range got.Rows {
			names = append(names, fmt.Sprint(r.All[0]))
		}
		if strings.Join(names, " ") != c.want || got.Matching != 3 {
			t.Errorf("%+v: %v of %d", c.order, names, got.Matching)
		}
	}
	counted := view.CountRows(rows(), []string{"state", "groups"}, view.RowOrder{})
	text, err := json.Marshal(counted)
	if want := `{"columns":["state","groups","count"],"rows":[{"state":"failed","groups":["web","eu"],"count":1},{"state":"pending","groups":["web","eu"],"count":1},{"state":"ok","groups":["web","eu"],"count":1}],"matching":3,"incomplete":[]}`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	counted = view.CountRows(append(rows(), queryNode("d", fleet.StatusOK, "")), []string{"state"}, view.RowOrder{Limit: 1})
	if fmt.Sprint(counted.Rows[0].All, counted.Matching) != "[ok 2] 3" {
		t.Errorf("%v", counted)
	}
}

// TestForms: values are JSON in CSV and readable text in tables.
func TestForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value     any
		text, csv string
		chosen    bool
	}{
		{nil, "-", "", false}, {"", "-", "", true}, {"=1", "=1", "=1", true}, {true, "true", "true", false}, {7, "7", "7", false}, {uint64(7), "7", "7", false}, {-0.5, "-0.5", "-0.5", false}, {1e9, "1000000000", "1000000000", false},
		{[]string{"a", "b"}, "a,b", "a,b", true}, {map[string]string{"b": "2", "a": "1"}, "a=1,b=2", "a=1,b=2", true}, {map[string]any{"a": 1.0}, `{"a":1}`, `{"a":1}`, true}, {[]any{1.0}, "[1]", "[1]", true},
		{1500 * time.Millisecond, "1.5s", "1500000000", false}, {time.Duration(0), "-", "0", false}, {queryNow, queryNow.Local().Format(model.TimeFormat), "2026-01-02T03:04:05Z", false}, {time.Time{}, "-", "", false},
	} {
		if view.ValueText(c.value) != c.text || view.ValueCSV(c.value) != c.csv || view.IsTextValue(c.value) != c.chosen {
			t.Errorf("%v: %q %q %v", c.value, view.ValueText(c.value), view.ValueCSV(c.value), view.IsTextValue(c.value))
		}
	}
	text, err := json.Marshal(view.SelectRows([]view.QueryNode{{}}, []string{"heard"}, view.RowOrder{}))
	if err != nil || !strings.Contains(string(text), `"heard":null`) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestCurrent: a result holds while the newest whole run has it, reported, counted or not there.
func TestCurrent(t *testing.T) {
	t.Parallel()
	result := func(run, resource, outcome string, minute int) targets.Result {
		return targets.Result{Node: "web01", Manifest: "group.web.site", Revision: 7, RunID: run, Resource: resource, Outcome: outcome, Error: "broken", Time: queryNow.Add(time.Duration(minute) * time.Minute)}
	}
	run := func(id string, minute int, change func(*model.Run)) model.Run {
		r := model.Run{RunID: id, Manifest: "group.web.site", Revision: 7, Cause: model.CauseSchedule, Started: queryNow.Add(time.Duration(minute) * time.Minute), Duration: time.Second, Counts: model.Counts{Total: 3}}
		if change != nil {
			change(&r)
		}
		return r
	}
	counts := func(ids ...string) func(*model.Run) {
		return func(r *model.Run) {
			for _, id := range ids {
				r.Unchanged = append(r.Unchanged, model.Unchanged{RunID: id, Transactions: 1})
			}
			r.Errors, r.Counts.Failed = []string{"site:4:11: exec#a: broken"}, 1
		}
	}
	ten := strings.Fields("a b c d e f g h i j")
	first := []targets.Result{result("r1", "exec#a", "failed", 0), result("r1", "file#b", "changed", 0)}
	for name, c := range map[string]struct {
		results []targets.Result
		runs    []model.Run
		want    string
	}{
		"no run is known":             {first, nil, "exec#a failed, file#b changed"},
		"of this run":                 {first, []model.Run{run("r1", 0, nil)}, "exec#a failed, file#b changed"},
		"stable since":                {first, []model.Run{run("r1", 0, nil), run("r2", 5, nil)}, "exec#a stable, file#b stable"},
		"counted again":               {first, []model.Run{run("r2", 5, counts("r1"))}, "exec#a failed, file#b stable"},
		"the older run is read later": {first, []model.Run{run("r2", 5, nil), run("r1", 0, nil)}, "exec#a stable, file#b stable"},
		"reported again":              {append(first, result("r2", "exec#a", "failed", 5)), []model.Run{run("r2", 5, nil)}, "exec#a failed, file#b stable"},
		"one of two mended": {append(first, result("r1", "exec#c", "failed", 0)), []model.Run{run("r2", 5, func(r *model.Run) {
			counts("r1")(r)
			r.Errors, r.Counts.Failed = []string{"site:4:11: exec#c: broken"}, 1
		})}, "exec#a stable, exec#c failed, file#b stable"},
		"not all errors are known": {append(first, result("r1", "exec#c", "failed", 0)), []model.Run{run("r2", 5, func(r *model.Run) {
			counts("r1")(r)
			r.Errors, r.Counts.Failed = []string{"site:4:11: exec#c: broken"}, 2
		})}, "exec#a failed, exec#c failed, file#b stable"},
		"counted of more runs than named": {first, []model.Run{run("r2", 5, counts(ten...))}, "exec#a failed, file#b stable"},
		"drift of another resource":       {append(first, result("r2", "file#b", "changed", 5)), []model.Run{run("r1", 0, nil), run("r2", 5, func(r *model.Run) { r.Cause = model.CauseDrift })}, "exec#a failed, file#b changed"},
		"a later repair":                  {append(first, result("r3", "file#b", "changed", 9)), []model.Run{run("r2", 5, nil)}, "exec#a stable, file#b changed"},
		"nothing ran":                     {first, []model.Run{run("r2", 5, func(r *model.Run) { r.Refused, r.Counts = true, model.Counts{} })}, "exec#a failed, file#b changed"},
		"another revision":                {first, []model.Run{run("r2", 5, func(r *model.Run) { r.Revision = 8 })}, ""},
		"another node's":                  {append(first, targets.Result{Node: "web02", Error: "broken", Manifest: "group.web.site", Resource: "exec#a", Outcome: "failed", Revision: 7}), []model.Run{run("r2", 5, nil)}, "exec#a stable, file#b stable, exec#a failed"},
	} {
		var current view.CurrentResults
		for _, r := range c.results {
			current.AddResult(r)
		}
		current.AddResult(c.results[0]) // delivered twice
		for _, r := range c.runs {
			current.AddRun("web01", r)
		}
		var got []string
		for _, r := range current.Rows() {
			got = append(got, r.Resource+" "+r.Outcome)
			if (r.Outcome == "stable") != (r.Error == "") {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, ", "), c.want)
		}
	}
}

// TestCurrentAfterFarRun checks that a run that ends after the year 9999 gives results with a time that JSON can represent.
func TestCurrentAfterFarRun(t *testing.T) {
	t.Parallel()
	var current view.CurrentResults
	current.AddResult(targets.Result{Node: "web01", Manifest: "group.web.site", RunID: "r1", Resource: "file#b", Time: queryNow})
	current.AddRun("web01", model.Run{RunID: "r2", Manifest: "group.web.site", Started: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), Duration: time.Hour, Counts: model.Counts{Total: 1}})
	if _, err := json.Marshal(current.Rows()); err != nil {
		t.Error(err)
	}
}

// TestOfReport: a transaction's report as a result; other reports are an error.
func TestOfReport(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(model.Transaction{
		Type: "file", Name: "/etc/motd", Errors: []string{"one", "two"}, Duration: time.Second, Drift: &model.Repair{From: "mode: 0666", Latency: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := view.ResultOf(model.Report{Node: "web01", Outcome: "failed", Time: queryNow, Data: data, Manifest: "group.web.site"})
	if err != nil || got.Resource != "file#/etc/motd" || got.Error != "one\ntwo" || got.Text != "one; two" || !got.Drift || got.Latency != time.Minute || got.Drifted != "mode: 0666" || got.Outcome != "failed" {
		t.Errorf("%+v, %v", got, err)
	}
	failed := json.RawMessage(`{"type":"file","name":"/etc/motd","failed":true,"drift":{"from":"mode: 0666"}}`)
	if got, err := view.ResultOf(model.Report{Node: "web01", Outcome: "failed", Data: failed}); err != nil || got.Drift || got.Drifted != "mode: 0666" {
		t.Errorf("drift that could not be repaired: %+v, %v", got, err)
	}
	if _, err := view.ResultOf(model.Report{Node: "web01", ID: "x", Data: json.RawMessage(`[]`)}); err == nil || !strings.Contains(err.Error(), "transaction x of node web01") {
		t.Errorf("no transaction: %v", err)
	}
}

// TestDocumentedColumns: each column is documented, and each documented expression compiles.
func TestDocumentedColumns(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "fleet", "query.md"))
	if err != nil {
		t.Fatal(err)
	}
	section := string(page)
	for _, table := range []view.QueryTable{view.NodeTable(), view.ResultTable(), view.PackageTable()} {
		for _, c := range table.Columns {
			if !strings.Contains(section, "`"+c+"`") {
				t.Errorf("column %s is not documented", c)
			}
		}
	}
	examples := 0
	for _, found := range regexp.MustCompile(`muster fleet query (?:--from (\w+) )?'([^']+)'`).FindAllStringSubmatch(section, -1) {
		examples++
		compile := func(text string) error { _, err := targets.CompileResults(text); return err }
		if found[1] == "" || found[1] == "nodes" {
			compile = func(text string) error { _, err := targets.Compile(text); return err }
		}
		if found[1] == "packages" {
			compile = func(text string) error { _, err := targets.CompilePackages(text); return err }
		}
		if err := compile(found[2]); err != nil {
			t.Error(err)
		}
	}
	if examples < 3 {
		t.Errorf("found %d examples", examples)
	}
}

// TestOneNodeFillsNoMemory: a node that names ever more resources and manifests displaces none of others.
func TestOneNodeFillsNoMemory(t *testing.T) {
	t.Parallel()
	var current view.CurrentResults
	for i := range 70_000 {
		name := strconv.Itoa(i)
		current.AddResult(targets.Result{Node: "loud", Manifest: "m", Resource: name})
		current.AddRun("many", model.Run{Manifest: name, Counts: model.Counts{Total: 1}})
	}
	for i := range 10 {
		current.AddResult(targets.Result{Node: "web01", Manifest: "m", Resource: strconv.Itoa(i)})
	}
	at := time.Now()
	current.AddResult(targets.Result{Node: "loud", Manifest: "m", Resource: "7", Time: at})
	counts := map[string]int{}
	for _, r := range current.Rows() {
		counts[r.Node]++
		if r.Node == "loud" && r.Resource == "7" && !r.Time.Equal(at) {
			t.Error("a known resource has no newer result")
		}
	}
	if full := slices.Sorted(slices.Values(current.Full())); counts["loud"] != 50_000 || counts["web01"] != 10 || !slices.Equal(full, []string{"loud", "many"}) {
		t.Errorf("%v, full are %v", counts, full)
	}
}
