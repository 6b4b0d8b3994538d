package view_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// node returns the state of a node that runs some manifests.
func node(name string, heard time.Time, outcome model.Outcome, keys ...string) model.Node {
	n := model.Node{NodeState: model.NodeState{Node: name, Version: "1.2.0", Groups: []string{"web"}, Manifests: map[string]model.ManifestState{}, SilentAfter: model.Duration(time.Minute)}, Heard: heard}
	for _, key := range keys {
		n.Manifests[key] = model.ManifestState{Revision: 7, Outcome: outcome, At: heard}
	}

	return n
}

func entry(key string, revision uint64) model.Entry {
	return model.Entry{Key: key, Revision: revision, Time: time.Now().Add(-time.Hour)}
}

// document returns a report with a document.
func document(name, kind, protocol string, outcome model.Outcome, data any) model.Report {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}

	return model.Report{Node: name, Kind: kind, Type: protocol, Outcome: outcome, ID: ksuid.New().String(), Time: time.Now(), Data: text}
}

// runOf returns the summary of a run.
func runOf(name, manifest, id string, outcome model.Outcome) model.Report {
	r := document(name, model.KindRun, model.ProtocolRun, outcome, model.Run{RunID: id, Manifest: manifest, Started: time.Now(), Duration: time.Second, Counts: model.Counts{Total: 3}})
	r.RunID, r.Manifest, r.Revision, r.Cause = id, manifest, 7, model.CauseSchedule

	return r
}

// failureOf returns a transaction that failed.
func failureOf(name, manifest, id, resource string) model.Report {
	r := document(name, model.KindTransaction, model.ProtocolTransaction, model.OutcomeFailed, model.Transaction{Type: "file", Name: resource, Failed: true, Errors: []string{"no space"}})
	r.RunID, r.Manifest, r.Cause = id, manifest, model.CauseSchedule

	return r
}

// message returns what the stream stored some time ago.
func message(seq uint64, age time.Duration, all ...model.Report) model.StoredReports {
	return model.StoredReports{Sequence: seq, Stored: time.Now().Add(-age), Reports: all}
}

// seqs returns the sequences of events.
func seqs(events []view.Event) []uint64 {
	out := []uint64{}
	for _, e := range events {
		out = append(out, e.Seq)
	}

	return out
}

// TestTheOrderDoesNotMatter: reports that come late, twice or out of order make the same view.
func TestTheOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	var all []model.StoredReports
	for i := range 40 {
		name, id := fmt.Sprintf("web%d", i%4), fmt.Sprintf("run%d", i)
		all = append(all,
			message(uint64(10*i+1), time.Minute, failureOf(name, "group.web.motd", id, "/etc/motd"), failureOf(name, "group.web.motd", id, "/etc/other")),
			message(uint64(10*i+2), time.Minute, runOf(name, "group.web.motd", id, model.OutcomeFailed)))
	}
	tell := func(order []model.StoredReports) string {
		f := view.New(view.Options{})
		for _, m := range order {
			f.Add(m)
		}
		o := f.Overview()
		total := view.Point{}
		for _, p := range o.History {
			total.Runs += p.Runs
			total.Failed += p.Failed
		}
		text, err := json.Marshal([]any{f.Events(view.EventQuery{Limit: 1000}), f.Runs(view.EventQuery{Limit: 1000}), o.Top, total.Runs, total.Failed})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	want := tell(all)
	backwards := slices.Clone(all)
	slices.Reverse(backwards)
	if got := tell(backwards); got != want {
		t.Errorf("backwards:\n%s\nwant\n%s", got, want)
	}
	if got := tell(append(slices.Clone(all), backwards...)); got != want {
		t.Errorf("twice:\n%s\nwant\n%s", got, want)
	}
}

// TestWhatReportsSay: each kind of report is an event, runs and requests are put together, and
// what needs attention is counted.
func TestWhatReportsSay(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	stable, changed := runOf("web1", "group.web.motd", "r1", model.OutcomeStable), runOf("web2", "group.web.motd", "r2", model.OutcomeChanged)
	changed.Data, _ = json.Marshal(model.Run{RunID: "r2", Counts: model.Counts{Total: 3, Changed: 1}, Drift: model.Drifted{Repaired: 1}})
	drift := document("web2", model.KindTransaction, model.ProtocolTransaction, model.OutcomeChanged, model.Transaction{Type: "file", Name: "/etc/motd", Changed: true, Drift: &model.Repair{From: "mode: 0666"}})
	drift.RunID, drift.Manifest, drift.Cause = "r2", "group.web.motd", model.CauseDrift
	answer := func(name string, outcome model.Outcome) model.Report {
		r := document(name, model.KindEnsure, model.ProtocolEnsureResponse, outcome, model.EnsureResponse{ID: "q1", Node: name, Phase: model.EnsureDone, State: &model.Transaction{Type: "exec", Name: "uptime", Changed: true}})
		r.CorrelationID = "q1"
		return r
	}
	flaps := document("web3", model.KindNode, model.ProtocolNode, model.Outcome(model.NodeFlapping), model.NodeState{Node: "web3", Message: "flaps", Flapping: []model.FlappingState{{Manifest: "group.web.motd", Resource: model.Ref{Type: "file", Name: "/etc/motd"}, Writer: "cron"}}})
	health := document("web3", model.KindHealth, model.ProtocolHealth, "critical", model.HealthReport{Resource: model.Ref{Type: "service", Name: "httpd"}, Check: "http", Output: "refused"})
	f.Add(message(1, time.Hour, stable))
	f.Add(message(2, 2*time.Minute, drift))
	f.Add(message(3, 2*time.Minute, changed))
	f.Add(message(4, time.Minute, answer("web1", model.OutcomeChanged)))
	f.Add(message(5, time.Minute, answer("web2", model.OutcomeFailed)))
	f.Add(message(6, time.Minute, flaps))
	f.Add(message(7, time.Minute, health))
	f.Add(message(8, time.Minute, failureOf("web4", "group.web.motd", "r9", "/etc/motd")))

	page := f.Events(view.EventQuery{})
	var texts []string
	for _, e := range page.Events {
		texts = append(texts, fmt.Sprintf("%d %s %s %s %s: %s", e.Seq, e.Node, e.Kind, e.Outcome, e.Resource, e.Text))
	}
	want := []string{
		"8 web4 transaction failed file#/etc/motd: no space",
		"7 web3 health critical service#httpd: http: refused",
		"6 web3 node flapping : flaps",
		"5 web2 ensure failed exec#uptime: ",
		"4 web1 ensure changed exec#uptime: ",
		"3 web2 run changed : 3 resources, 1 changed in 0s",
		"2 web2 transaction changed file#/etc/motd: (drift, repaired in 0s)",
		"1 web1 run stable : 3 resources in 1s",
	}
	if !slices.Equal(texts, want) {
		t.Errorf("events:\n%q\nwant\n%q", texts, want)
	}
	var runs []string
	for _, r := range f.Runs(view.EventQuery{}) {
		runs = append(runs, fmt.Sprint(r.RunID, " ", r.Node, " ", r.Manifest, " ", r.Outcome))
	}
	if want := []string{"r9 web4 group.web.motd ", "r2 web2 group.web.motd changed", "r1 web1 group.web.motd stable"}; !slices.Equal(runs, want) {
		t.Errorf("runs %q", runs)
	}
	if got := f.Requests(); len(got) != 1 || got[0].ID != "q1" || got[0].Answers != 2 || got[0].Failed != 1 || got[0].Changed != 1 || got[0].Resource != "exec#uptime" {
		t.Errorf("requests %+v", got)
	}
	o := f.Overview()
	for want, list := range map[string][]view.TopResource{"web4: no space": o.Top.Failing, "web2: mode: 0666": o.Top.Drifting, "web3: probably written by cron": o.Top.Flapping} {
		if len(list) != 1 || list[0].Manifest != "motd" || list[0].Resource != "file#/etc/motd" || list[0].Count != 1 || list[0].Nodes != 1 || list[0].First[0]+": "+list[0].Text != want {
			t.Errorf("%s: %+v", want, list)
		}
	}
	total := view.Point{}
	for _, p := range o.History {
		total.Runs += p.Runs
		total.Changed += p.Changed
		total.Repaired += p.Repaired
	}
	if len(o.History) != 288 || total.Runs != 2 || total.Changed != 1 || total.Repaired != 1 {
		t.Errorf("over time: %d intervals, %+v", len(o.History), total)
	}
	for name, q := range map[string]struct {
		view.EventQuery
		want []uint64
	}{
		"node":     {view.EventQuery{Node: "web3"}, []uint64{7, 6}},
		"kind":     {view.EventQuery{Kind: model.KindRun}, []uint64{3, 1}},
		"outcome":  {view.EventQuery{Outcome: model.OutcomeFailed}, []uint64{8, 5}},
		"cause":    {view.EventQuery{Cause: model.CauseDrift}, []uint64{2}},
		"manifest": {view.EventQuery{Manifest: "motd"}, []uint64{8, 3, 2, 1}},
		"key":      {view.EventQuery{Manifest: "group.web.motd", Kind: model.KindRun}, []uint64{3, 1}},
		"run":      {view.EventQuery{RunID: "r2"}, []uint64{3, 2}},
		"search":   {view.EventQuery{Search: "REFUSED"}, []uint64{7}},
		"before":   {view.EventQuery{Before: 3}, []uint64{2, 1}},
		"limit":    {view.EventQuery{Limit: 2}, []uint64{8, 7}},
	} {
		if got := f.Events(q.EventQuery); !slices.Equal(seqs(got.Events), q.want) || got.More != (name == "limit") {
			t.Errorf("%s: %v, more %v", name, seqs(got.Events), got.More)
		}
	}
}

// TestInvalidReports are counted and named, and hide no other.
func TestInvalidReports(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	m := message(1, 0, runOf("web1", "group.web.motd", "r1", model.OutcomeStable))
	m.Invalid = fmt.Errorf("invalid event on muster.report.web1.run.stable")
	f.Add(m)
	broken := runOf("web1", "group.web.motd", "r2", model.OutcomeFailed)
	broken.Data = []byte(`{"counts": []}`)
	f.Add(message(2, 0, broken))
	if got := f.Events(view.EventQuery{}); len(got.Events) != 2 {
		t.Errorf("events %+v", got.Events)
	}
	if got := f.Progress().Incomplete; len(got) != 1 || got[0] != "Messages of the stream of reports cannot be read, and are neither listed nor counted: 1; the last: invalid event on muster.report.web1.run.stable" {
		t.Errorf("incomplete %q", got)
	}
	if got := f.Progress().Problems; len(got) != 0 {
		t.Errorf("the view is up to date, but for %q", got)
	}
	f.Problem("reports", "not now")
	if got := f.Progress().Problems; len(got) != 1 || got[0] != "not now" {
		t.Errorf("problems %q", got)
	}
	f.Clear("reports")
	f.SetNotice("restored at 12:00")
	if got := f.Progress(); len(got.Problems) != 0 || got.Notice != "restored at 12:00" {
		t.Errorf("problems %q, notice %q", got.Problems, got.Notice)
	}
	f.SetNotice("")
	if got := f.Progress().Notice; got != "" {
		t.Errorf("notice %q", got)
	}
}

// TestWhoAskedIsWhatMostNodesSay: each node repeats the sender's name, and one may lie.
func TestWhoAskedIsWhatMostNodesSay(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	answers := func(seq uint64, node string, from *model.Sender) {
		r := document(node, model.KindEnsure, model.ProtocolEnsureResponse, model.OutcomeChanged, model.EnsureResponse{Protocol: model.ProtocolEnsureResponse, Node: node, ID: "q1", Phase: model.EnsureDone, Sender: from})
		r.CorrelationID = "q1"
		f.Add(message(seq, time.Minute, r))
	}
	anna := &model.Sender{By: "anna@desk", Nodes: 4}
	answers(1, "liar", &model.Sender{By: "bob\n\x1b[2J", Nodes: -5})
	if got := f.Requests(); len(got) != 1 || strings.ContainsAny(got[0].By, "\n") || got[0].Nodes != 0 {
		t.Errorf("of one node: %+v", got)
	}
	answers(2, "old", nil)
	answers(3, "web1", anna)
	answers(4, "web2", anna)
	if got := f.Requests(); len(got) != 1 || got[0].By != "anna@desk" || got[0].Nodes != 4 || got[0].Answers != 4 {
		t.Errorf("of four nodes: %+v", got)
	}
	if got := f.Events(view.EventQuery{Node: "web1"}).Events; len(got) != 1 || got[0].By != "anna@desk" {
		t.Errorf("events %+v", got)
	}
}

// TestARequestHasAName: no answer to a refused or early cancelled request names its resource.
func TestARequestHasAName(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	answers := func(seq uint64, node string, state *model.Transaction) {
		r := document(node, model.KindEnsure, model.ProtocolEnsureResponse, model.OutcomeNotRun, model.EnsureResponse{Protocol: model.ProtocolEnsureResponse, Node: node, ID: "q1", Phase: model.EnsureFailed, Error: "refused", State: state})
		r.CorrelationID = "q1"
		f.Add(message(seq, time.Minute, r))
	}
	answers(1, "web1", nil)
	if got := f.Requests(); len(got) != 1 || got[0].Resource != "ensure" {
		t.Errorf("refused: %+v", got)
	}
	if got := f.Events(view.EventQuery{}).Events; len(got) != 1 || got[0].Resource != "ensure" {
		t.Errorf("events %+v", got)
	}
	answers(2, "web2", &model.Transaction{Type: "exec", Name: "uptime"})
	answers(3, "web3", nil)
	if got := f.Requests(); len(got) != 1 || got[0].Resource != "exec#uptime" {
		t.Errorf("executed elsewhere: %+v", got)
	}
}
