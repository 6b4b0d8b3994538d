package view_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

func report(t testing.TB, typ string, document any) model.Report {
	t.Helper()
	data, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}

	return model.Report{Node: "a", Type: typ, Manifest: "node.a.motd", Revision: 7, Data: data}
}

func TestReportReads(t *testing.T) {
	ref := model.Ref{Type: "file", Name: "/etc/motd"}
	file := model.Transaction{Type: "file", Name: "/etc/motd"}
	with := func(change func(*model.Transaction)) model.Transaction {
		out := file
		change(&out)
		return out
	}
	earlier := ksuid.New()
	run := model.Run{Duration: 12 * time.Millisecond, Counts: model.Counts{Total: 4, Changed: 1, Failed: 1, Skipped: 1, NotRun: 1}}
	for name, c := range map[string]struct {
		typ              string
		document         any
		subject, summary string
	}{
		"run":                  {model.ProtocolRun, run, "node.a.motd@7", "4 resources, 1 changed, 1 failed, 1 skipped, 1 not run in 12ms"},
		"noop run":             {model.ProtocolRun, model.Run{Noop: true, Counts: model.Counts{Total: 1}}, "node.a.motd@7", "1 resource in 0s (noop)"},
		"unchanged":            {model.ProtocolRun, model.Run{Counts: model.Counts{Total: 5, Failed: 5}, Unchanged: []model.Unchanged{{RunID: "r1", Transactions: 3}, {RunID: "r4", Transactions: 1}}, Errors: []string{"no"}}, "node.a.motd@7", "5 resources, 5 failed in 0s, 3 unchanged since run r1, 1 unchanged since run r4: no"},
		"unchanged since many": {model.ProtocolRun, model.Run{Unchanged: make([]model.Unchanged, 12)}, "node.a.motd@7", "0 resources in 0s" + strings.Repeat(", 0 unchanged since run ", 10) + ", others since 2 more runs"},
		"since when":           {model.ProtocolRun, model.Run{Counts: model.Counts{Total: 3, Failed: 3}, Unchanged: []model.Unchanged{{RunID: earlier.String(), Transactions: 3}}}, "node.a.motd@7", "3 resources, 3 failed in 0s, 3 unchanged since " + earlier.Time().Local().Format(model.TimeFormat) + " (run " + earlier.String() + ")"},
		"some noop":            {model.ProtocolRun, model.Run{Counts: model.Counts{Total: 3, Changed: 3, Noop: 2}}, "node.a.motd@7", "3 resources, 1 changed, 2 would change in 0s"},
		"failed run":           {model.ProtocolRun, model.Run{Refused: true, Errors: []string{"a", "b"}}, "node.a.motd@7", "0 resources in 0s: a; b"},
		"errors":               {model.ProtocolTransaction, with(func(t *model.Transaction) { t.Errors = []string{"x", "y"} }), "file#/etc/motd", "x; y"},
		"failed": {model.ProtocolTransaction, with(func(t *model.Transaction) {
			t.Source, t.Errors = model.Position{File: "m.yaml", Line: 4, Column: 2}, []string{"x"}
		}), "m.yaml:4:2: file#/etc/motd", "x"},
		"repaired": {model.ProtocolTransaction, with(func(t *model.Transaction) {
			t.Changed, t.Changes, t.Drift = true, []model.Change{{Message: "updated the file"}}, &model.Repair{From: "content", Latency: 4123 * time.Microsecond}
		}), "file#/etc/motd", "updated the file (drift, repaired in 4.1ms)"},
		"placed": {model.ProtocolTransaction, with(func(t *model.Transaction) {
			t.Source, t.SkipReason = model.Position{File: "m.yaml", Line: 4}, "expired"
		}), "file#/etc/motd", "expired"},
		"several of a kind": {model.ProtocolTransaction, with(func(t *model.Transaction) {
			t.Changes = []model.Change{{Action: "scaffold", Message: "changed 2 scaffold files", Property: "/a", From: "absent", To: "x"}, {Action: "scaffold", Property: "/b", From: "absent", To: "y"}, {Action: "purge", Property: "/c", From: "present", To: "absent"}}
		}), "file#/etc/motd", "changed 2 scaffold files (/a absent -> x, /b absent -> y), purge (/c present -> absent)"},
		"unmet":   {model.ProtocolTransaction, with(func(t *model.Transaction) { t.UnmetRequirements = []model.Ref{ref, ref} }), "file#/etc/motd", "needs file#/etc/motd, file#/etc/motd"},
		"noop":    {model.ProtocolTransaction, with(func(t *model.Transaction) { t.NoopMessage = "Would have created the file" }), "file#/etc/motd", "Would have created the file"},
		"skipped": {model.ProtocolTransaction, with(func(t *model.Transaction) { t.SkipReason = "control.if is false" }), "file#/etc/motd", "control.if is false"},
		"changes": {model.ProtocolTransaction, with(func(t *model.Transaction) {
			t.Changes = []model.Change{{Action: "store", Message: "updated the file", Property: "content", From: "sha256-a", To: "sha256-b"}, {Action: "attributes", Message: "updated the file", Property: "mode", From: "0600", To: "0644"}, {Action: "store", Message: "updated the file"}, {Action: "stop"}}
		}), "file#/etc/motd", "updated the file, updated the file (mode 0600 -> 0644), stop"},
		"command": {model.ProtocolTransaction, with(func(t *model.Transaction) {
			t.Changed, t.Changes, t.Status = true, []model.Change{{Action: "execute"}}, json.RawMessage(`{"exit_code": 3}`)
		}), "file#/etc/motd", "ran (exit 3)"},
		"ensure":        {model.ProtocolEnsureResponse, model.EnsureResponse{State: &file}, "ensure file#/etc/motd", ""},
		"ensure error":  {model.ProtocolEnsureResponse, model.EnsureResponse{Error: "no"}, "ensure", "no"},
		"ensure phase":  {model.ProtocolEnsureResponse, model.EnsureResponse{Phase: model.EnsureRunning}, "ensure", "running"},
		"node":          {model.ProtocolNode, model.NodeState{Message: "the bucket is new", Version: "1.2"}, "", "the bucket is new"},
		"node started":  {model.ProtocolNode, model.NodeState{Event: model.NodeStarted, Version: "1.2"}, "", "muster 1.2"},
		"something":     {"io.muster.v9.new", map[string]int{"a": 1}, "node.a.motd@7", ""},
		"not readable":  {model.ProtocolRun, "text", "node.a.motd@7", "0 resources in 0s"},
		"health":        {model.ProtocolHealth, model.HealthReport{Resource: ref, Check: "http", Status: "critical", Was: "ok", Output: "refused"}, "file#/etc/motd http", "refused"},
		"silent health": {model.ProtocolHealth, model.HealthReport{Resource: ref, Check: "http", Status: "critical", Was: "ok"}, "file#/etc/motd http", "was ok"},
	} {
		t.Run(name, func(t *testing.T) {
			r := report(t, c.typ, c.document)
			if subject, summary := view.DescribeReport(r); subject != c.subject || summary != c.summary {
				t.Errorf("%q, %q", subject, summary)
			}
		})
	}
	alone := model.Report{Type: model.ProtocolRun, Manifest: "motd.yaml", Data: json.RawMessage("{}")}
	if subject, _ := view.DescribeReport(alone); subject != "motd.yaml" {
		t.Errorf("without a revision: %q", subject)
	}
}

// A node may write any text that fits into a report.
func TestSummariesAreNoLongerThanReports(t *testing.T) {
	for name, r := range map[string]model.Report{
		"unchanged": {Type: model.ProtocolRun, Data: json.RawMessage(`{"unchanged":[` + strings.Repeat(`{},`, 20_000) + `{}]}`)},
		"errors":    {Type: model.ProtocolRun, Data: json.RawMessage(`{"errors":[` + strings.Repeat(`"",`, 20_000) + `""]}`)},
		"changes":   {Type: model.ProtocolTransaction, Data: json.RawMessage(`{"changes":[` + strings.Repeat(`{},`, 20_000) + `{}]}`)},
		"unmet":     {Type: model.ProtocolTransaction, Data: json.RawMessage(`{"unmet_requirements":[` + strings.Repeat(`"a#b",`, 10_000) + `"a#b"]}`)},
	} {
		if _, summary := view.DescribeReport(r); len(summary) > len(r.Data) {
			t.Errorf("%s: a report of %d bytes has a summary of %d", name, len(r.Data), len(summary))
		}
	}
}
