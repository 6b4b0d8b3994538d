package page

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/page/internal/build"
	"github.com/musterfleet/muster/model"
)

func TestTemplatesAreFresh(t *testing.T) {
	t.Parallel()
	all, err := build.All(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Error("there are no templates")
	}
	for path, want := range all {
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is old: run go generate ./fleet/web/page", path)
		}
	}
}

func TestNamesInURLs(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		string(runURL("a/b", "../c?#")): "/runs/a%2Fb/..%2Fc%3F%23", string(NodeURL("<x>\u202e")): "/nodes/%3Cx%3E%E2%80%AE",
		member("a_1"): ".a_1", member("1a"): `["1a"]`, member("a.b"): `["a.b"]`,
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestWhatFailsBehindAnError: the number of nodes is a lower bound where their states have another error first.
func TestWhatFailsBehindAnError(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]view.TopResource{
		"none known now": {}, "now on 1 node": {Now: 1}, "now on at least 14 nodes": {Now: 14, AtLeast: true},
	} {
		var html bytes.Buffer
		if err := failsMost([]view.TopResource{r}, time.Now()).Render(t.Context(), &html); err != nil || !strings.Contains(html.String(), ">"+want+"<") {
			t.Errorf("no %q (%v): %s", want, err, &html)
		}
	}
}

// TestErrorsOfALine: both lists of errors show that the texts of nodes differ.
func TestErrorsOfALine(t *testing.T) {
	t.Parallel()
	f := view.Failure{Manifest: "app", Status: fleet.StatusFailed, Error: "app:8:11: file#/srv/web01/a: no directory", Differ: 2, Members: view.Members{Nodes: 3}}
	const want = "file#/srv/web01/a: no directory (at app:8:11) (the text differs on 2 of them)"
	var html bytes.Buffer
	if err := failing([]view.Failure{f}).Render(t.Context(), &html); err != nil || !strings.Contains(html.String(), want) {
		t.Errorf("%v: %s", err, &html)
	}
	if all := concernsOf(view.Overview{Summary: view.Summary{Failing: []view.Failure{f}}}); len(all) != 1 || all[0].why != want {
		t.Errorf("%+v", all)
	}
}

// TestNoAllClearBelowANotice: with a notice that data may be incomplete, the overview does not say that all is well.
func TestNoAllClearBelowANotice(t *testing.T) {
	t.Parallel()
	const allClear = "Everything is in its desired state"
	known := view.Progress{Nodes: true, LastRuns: true, History: true}
	with := func(change func(*view.Overview)) view.Overview {
		o := view.Overview{Progress: known, Summary: view.Summary{Total: 1}}
		change(&o)
		return o
	}
	for name, c := range map[string]struct {
		overview view.Overview
		isClear  bool
	}{
		"complete":      {with(func(*view.Overview) {}), true},
		"silent server": {with(func(o *view.Overview) { o.Progress.Problems = []string{"the server n1 does not answer"} }), false},
		"blind":         {with(func(o *view.Overview) { o.Progress.BlindSince = time.Now() }), false},
		"unread":        {with(func(o *view.Overview) { o.Progress.Nodes = false }), false},
		"incomplete":    {with(func(o *view.Overview) { o.Incomplete = []string{"the state of web01 is invalid"} }), false},
	} {
		var html bytes.Buffer
		if err := Overview(c.overview, Last(""), time.Now()).Render(t.Context(), &html); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(html.String(), allClear) != c.isClear {
			t.Errorf("%s: all-clear shown: %t", name, !c.isClear)
		}
	}
}

// TestEveryLinkHasAName, also where what a node or an administrator wrote has none.
func TestEveryLinkHasAName(t *testing.T) {
	t.Parallel()
	empty := regexp.MustCompile(`<a [^>]*>\s*</a>|href="/(nodes|runs/[^"/]*)/"`)
	for name, c := range map[string]templ.Component{
		"runs of a node": runs([]view.RunRow{{Node: "web01"}, {Node: "web01", RunID: "r1"}}, time.Now(), false),
		"runs":           runs([]view.RunRow{{Node: "web01"}, {Node: "web01", RunID: "r1"}}, time.Now(), true),
		"control":        Control([]view.ControlChange{{Key: "x.y.z"}, {Key: "node.<b>.pause"}, {Key: "node.web01.pause"}}, false, "", time.Now()),
	} {
		var out bytes.Buffer
		if err := c.Render(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if found := empty.FindString(out.String()); found != "" {
			t.Errorf("%s has %s", name, found)
		}
	}
}

// TestReasonOfANode has what the node says, whatever else is wrong.
func TestReasonOfANode(t *testing.T) {
	t.Parallel()
	rejected := []view.Assignment{{RolloutStatus: fleet.RolloutStatus{Key: "group.web.bad", Status: fleet.StatusRejected, Reason: "group.web.bad:4:31: unknown name"}}}
	detail := func(state fleet.Status, message string, statuses []view.Assignment) view.NodeDetail {
		return view.NodeDetail{Node: view.Node{Node: model.Node{NodeState: model.NodeState{Message: message}}, State: state, Statuses: statuses}}
	}
	for want, d := range map[string]view.NodeDetail{
		"":                                     detail("", "", nil),
		"not permitted: group.canary":          detail("", "not permitted: group.canary", nil),
		"unknown name (at group.web.bad:4:31)": detail(fleet.StatusRejected, "", rejected),
		"unknown name (at group.web.bad:4:31); not permitted: group.canary": detail(fleet.StatusRejected, "not permitted: group.canary", rejected),
	} {
		if got := nodeReason(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func FuzzFacts(f *testing.F) {
	for _, s := range []string{`{"a":{"b":[1,"x",null,{}]}}`, `[1]`, `{"a":`, strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)} {
		f.Add([]byte(s), "a")
	}
	f.Fuzz(func(t *testing.T, document []byte, search string) {
		l, err := FactsData{Facts: document, Search: search}.list()
		if err == nil && l.shown > maxFacts {
			t.Errorf("%d facts are shown", l.shown)
		}
	})
}

func TestChart(t *testing.T) {
	t.Parallel()
	var points []view.Point
	for i := range 500 {
		points = append(points, view.Point{At: time.Unix(int64(60*i), 0), Runs: 10, Changed: i % 7, Failed: i % 3, Repaired: 1})
	}
	c := newChart(points)
	if len(c.columns) > maxBars || c.runs != 5000 || c.repaired != 500 {
		t.Errorf("%d columns, %d runs, %d repaired", len(c.columns), c.runs, c.repaired)
	}
	// The last label is where the last interval ends, which is not after now.
	end := time.Unix(60*500, 0)
	if got, cut := c.end(end.Add(time.Hour)), c.end(end.Add(-time.Second)); !got.Equal(end) || !cut.Equal(end.Add(-time.Second)) {
		t.Errorf("ends at %s and %s, not %s", got, cut, end)
	}
	for n, want := range map[int]int{1: 1, 2: 2, 3: 4, 9: 10, 10: 10, 11: 20, 120: 200, 5001: 6000} {
		if got := roundUp(n); got != want {
			t.Errorf("above %d: %d, want %d", n, got, want)
		}
	}
	if empty := newChart(nil); len(empty.columns) != 0 {
		t.Error("nothing has columns")
	}
}

// TestChartTimesHaveTheirDay tests that a chart of a day or more shows the day of each time. The last interval
// of a real history has not ended yet.
func TestChartTimesHaveTheirDay(t *testing.T) {
	t.Parallel()
	for hours, as := range map[int]string{6: "clock", 24: "dated", 72: "dated"} {
		var points []view.Point
		for i := range hours * 12 {
			points = append(points, view.Point{At: time.Unix(int64(300*i), 0), Runs: 1, Changed: 1})
		}
		end := time.Unix(3600*int64(hours), 0)
		for _, now := range []time.Time{end.Add(-4 * time.Minute), end} {
			var page bytes.Buffer
			if err := history(newChart(points), view.Progress{}, "", now).Render(t.Context(), &page); err != nil {
				t.Fatal(err)
			}
			if times := strings.Count(page.String(), "data-as="); times != strings.Count(page.String(), `data-as="`+as+`"`) || times < 3 {
				t.Errorf("%d hours, %s before the end: not all of %d times are %s", hours, end.Sub(now), times, as)
			}
		}
	}
}

// TestFittingTags tests that a cell shows whole tags and counts the others.
func TestFittingTags(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	for _, c := range []struct {
		groups []string
		labels map[string]string
		want   string
	}{
		{nil, nil, "[] []"},
		{[]string{"sim", "sim-web"}, nil, "[sim sim-web] []"},
		{[]string{"canary", "sim", "sim-web"}, map[string]string{"rack": "a1"}, "[canary sim] [+2]"},
		{[]string{"sim"}, map[string]string{"rack": "a1", "room": "b2"}, "[sim] [rack=a1 +1]"},
		{[]string{long, "sim"}, nil, "[" + long + "] [+1]"},
		{nil, map[string]string{"a": long, "b": "c"}, "[] [a=" + long + " +1]"},
	} {
		groups, labels := fitting(c.groups, c.labels)
		if got := fmt.Sprint(groups, labels); got != c.want {
			t.Errorf("%q %q: %s, want %s", c.groups, c.labels, got, c.want)
		}
	}
}

// TestABarIsFull: its last part ends where it ends, however small the others are.
func TestABarIsFull(t *testing.T) {
	t.Parallel()
	for _, counts := range [][]int{{7}, {1, 0, 499}, {15, 1, 1, 5, 478}, {500, 1}} {
		var parts []share
		for _, c := range counts {
			parts = append(parts, share{look{}, c})
		}
		all := bar(parts)
		last := all[len(all)-1]
		x, err := strconv.ParseFloat(last.x, 64)
		width, also := strconv.ParseFloat(last.width, 64)
		if err != nil || also != nil || x+width != chartWidth {
			t.Errorf("%v: the last part is %+v", counts, last)
		}
	}
}

// TestDigestsAreShort: only digests are shortened.
func TestDigestsAreShort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"sha256 " + strings.Repeat("0123456789abcdef", 4): "sha256 0123456789ab", "sha256 0123": "sha256 0123", "absent": "absent", "": ""} {
		if got := shortDigest(text); got != want {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	source := []string{"a", "b", "c"}
	for at, want := range map[int]int{0: 0, 1: 3, 2: 3, 3: 3, 4: 0, -1: 0} {
		if got := around(source, at); len(got) != want {
			t.Errorf("around %d: %v", at, got)
		}
	}
	if got := around(source, 2); got[1].class != "here" || got[1].text != "   2  b" {
		t.Errorf("%v", got)
	}
}

// TestMessageFirst tests that an error begins with its message, and keeps its position.
func TestMessageFirst(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"group.web.nginx:14:11: service#nginx: no such unit":       "service#nginx: no such unit (at group.web.nginx:14:11)",
		"group.web.nginx:14: parse error":                          "parse error (at group.web.nginx:14)",
		"nginx:14:11: service#nginx: no such unit\nsee journalctl": "service#nginx: no such unit (at nginx:14:11)\nsee journalctl",
		"group.web.nginx: cannot be read: denied":                  "group.web.nginx: cannot be read: denied",
		"interrupted": "interrupted",
		"dial tcp 10.0.0.1:443: connection refused": "dial tcp 10.0.0.1:443: connection refused",
		"group.web.nginx:oops: x":                   "group.web.nginx:oops: x",
	} {
		if got := messageFirst(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestAnActionThatFailedOnAllNodesFailed: it is not partly done.
func TestAnActionThatFailedOnAllNodesFailed(t *testing.T) {
	t.Parallel()
	for want, states := range map[string][]ask.StateCount{
		"Done":             {{State: ask.StateDone, Nodes: 2}},
		"Failed":           {{State: ask.StateFailed, Nodes: 1}},
		"Not on all nodes": {{State: ask.StateFailed, Nodes: 1}, {State: ask.StateDone, Nodes: 1}},
		"On no node":       {{State: ask.StateFailed, Nodes: 1}, {State: ask.StateUnreachable, Nodes: 1}},
	} {
		if got := ofAction(ask.Action{Ended: time.Unix(1, 0), States: states}).word; got != want {
			t.Errorf("%v: %s, want %s", states, got, want)
		}
	}
}

// TestChangesAreCalledAsByTheCommands: one thing has one word in the audit, the API and muster fleet history.
func TestChangesAreCalledAsByTheCommands(t *testing.T) {
	t.Parallel()
	for _, kind := range []view.ChangeKind{view.ChangeAssigned, view.ChangePaused, view.ChangeResumed, view.ChangeRemoved, view.ChangeWritten} {
		if got := lookOf(changeLooks, kind).word; !strings.EqualFold(got, string(kind)) {
			t.Errorf("%s is called %s", kind, got)
		}
	}
}

// TestEventsOfARun tests that the changes of a run are behind it, and others stand alone.
func TestEventsOfARun(t *testing.T) {
	t.Parallel()
	event := func(id, node, run, kind string) view.Event {
		return view.Event{ID: id, Node: node, RunID: run, Kind: kind}
	}
	var got []string
	for _, g := range grouped([]view.Event{
		event("1", "a", "r1", model.KindRun), event("2", "b", "r1", model.KindTransaction), event("3", "a", "r1", model.KindTransaction),
		event("4", "a", "", model.KindNode), event("5", "a", "r1", model.KindTransaction), event("6", "a", "r0", model.KindTransaction), event("7", "a", "", model.KindTransaction),
	}) {
		text := g.ID + ":"
		for _, p := range g.parts {
			text += p.ID
		}
		got = append(got, text)
	}
	if want := "1:35 2: 4: 6: 7:"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}
