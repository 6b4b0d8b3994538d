package fleetcmd

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/hosttest"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// shown returns what a screen prints.
func shown(t *testing.T, show func(screen)) string {
	t.Helper()
	names, err := kvstore.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	show(screen{Printer: print.Printer{Out: &out, Err: &out}, names: names})

	return out.String()
}

// TestErrorsOfALine: errors of nodes at the same line of a manifest are one error, which reports that texts
// differ.
func TestErrorsOfALine(t *testing.T) {
	t.Parallel()
	const key = "group.all.app"
	var nodes []model.Node
	for _, name := range []string{"web01", "web02", "web03"} {
		nodes = append(nodes, model.Node{NodeState: model.NodeState{Node: name, Manifests: map[string]model.ManifestState{
			key: {Revision: 1, Outcome: model.OutcomeFailed, Error: key + ":8:11: file#/srv/" + name + "/a: no directory"},
		}}})
	}
	s := view.SummaryOf(nodes, []model.Entry{{Key: key, Revision: 1}}, "1.0.0", now)
	text := shown(t, func(p screen) { p.show(s) })
	if want := "\nfailing    failed on 3 nodes (web01, web02, web03) (the text differs on 2 of them): app: app:8:11: file#/srv/web01/a: no directory\n"; !strings.Contains(text, want) {
		t.Errorf("%q is missing in\n%s", want, text)
	}
}

// TestStatusOfManyManifests: manifests without a row are up to date, or the line does not claim it.
func TestStatusOfManyManifests(t *testing.T) {
	t.Parallel()
	var entries []model.Entry
	manifests := map[string]model.ManifestState{}
	for i := range 1746 {
		key := fmt.Sprintf("group.all.m%04d", i)
		entries = append(entries, model.Entry{Key: key, Revision: 1})
		manifests[key] = model.ManifestState{Revision: 1, Outcome: model.OutcomeStable}
	}
	manifests["group.all.m1700"] = model.ManifestState{Revision: 1, Outcome: model.OutcomeFailed, Error: "no"}
	s := view.SummaryOf([]model.Node{{NodeState: model.NodeState{Node: "web01", Manifests: manifests}}}, entries, "1.0.0", now)
	text := shown(t, func(p screen) { p.show(s) })
	if want := "\nand 1734 more, all up to date (--json has all)\n"; !strings.Contains(text, want) || !strings.Contains(text, "\nm1700 ") {
		t.Errorf("%q or m1700 is missing in\n%s", want, text)
	}
}

// TestManyFitOnOneScreen: of much the first is shown, and how much more there is.
func TestManyFitOnOneScreen(t *testing.T) {
	t.Parallel()
	var entries []model.Entry
	manifests := map[string]model.ManifestState{}
	for i := range 30 {
		key := fmt.Sprintf("group.all.m%02d", i)
		entries = append(entries, model.Entry{Key: key, Revision: 1})
		manifests[key] = model.ManifestState{Revision: 1, Outcome: model.OutcomeFailed, Error: fmt.Sprint("error ", i)}
	}
	var nodes []model.Node
	for i := range 30 {
		nodes = append(nodes, model.Node{NodeState: model.NodeState{
			Node: fmt.Sprintf("web%02d", i), Version: fmt.Sprintf("1.%d.0", i), Outbox: 1, Manifests: manifests,
			Clock:    model.ClockOffset{Offset: model.Offset(time.Hour)},
			Flapping: []model.FlappingState{{Manifest: "group.all.m00", Resource: model.Ref{Type: "file", Name: fmt.Sprint("/", i)}}},
		}})
	}
	s := view.SummaryOf(nodes, entries, "1.29.0", now)
	text := shown(t, func(p screen) { p.show(s) })
	if lines := strings.Count(text, "\n"); lines > 40 {
		t.Errorf("%d lines:\n%s", lines, text)
	}
	for _, want := range []string{
		"\nand 18 more (--json has all)\n", "\nfailing    failed on 30 nodes (web00, web01, web02, …): m00: error 0\n", "\n           and 25 more (see --json)\n",
		"\nclock      30 nodes: web00 is 1h0m0s ahead of the NATS server's, ", "\noutbox     30 nodes: web00: 1, web01: 1, web02: 1, …\n", "\nversion    1 node 1.29.0\n", "1.28.0 (older: web28)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if line := brief(s); !strings.HasPrefix(line, "nodes 30: 30 failed; m00 0/30 up-to-date, 30 failed; ") || !strings.HasSuffix(line, "; and 18 manifests more") {
		t.Errorf("in a line: %s", line)
	}
}

// TestOneNodeDoesNotFillTheScreen: a node chooses its groups, labels, manifests and texts, within
// 512 KiB.
func TestOneNodeDoesNotFillTheScreen(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000) + "\x1b[2J"
	n := model.Node{NodeState: model.NodeState{Node: "web01", Host: long, Version: long, Message: long, Labels: map[string]string{}, Manifests: map[string]model.ManifestState{}}}
	for i := range 1000 {
		n.Groups = append(n.Groups, fmt.Sprint(i, long[:100]))
		n.Labels[fmt.Sprint(i)] = long[:100]
		n.Manifests[fmt.Sprintf("group.all.a%d", i)] = model.ManifestState{Revision: 1, Error: long[:100]}
		n.Flapping = append(n.Flapping, model.FlappingState{Manifest: long[:100], Writer: long})
	}
	d := described{Node: view.NewNode(n, fleet.NewAssigned(nil).Statuses(n), fleet.NewAssigned(nil))}
	for range 100 {
		d.Reports = append(d.Reports, model.Report{Node: "web01", Kind: model.KindRun, Manifest: long})
	}
	if text := shown(t, func(p screen) { p.describe(d, now) }); len(text) > 50_000 || strings.Contains(text, "\x1b") {
		t.Errorf("%d bytes", len(text))
	}
}

// TestDescribeCutsNoReason: a terminal also shows the whole reason, because the remedy is at its end.
func TestDescribeCutsNoReason(t *testing.T) {
	names, err := kvstore.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	user, program := hosttest.Terminal(t)
	node := model.Node{NodeState: model.NodeState{Node: "web01", Message: strings.Repeat("the node says ", 20) + "do this"}}
	status := fleet.RolloutStatus{Key: "group.all.motd", Status: fleet.StatusRejected, Reason: strings.Repeat("the reason is ", 20) + "do that"}
	go func() {
		p := print.Printer{Out: program, Err: program}
		screen{Printer: p, names: names, whole: true}.describe(described{Node: view.Node{Node: node, Statuses: []view.Assignment{{RolloutStatus: status}}}}, time.Now())
	}()
	text := ""
	for lines := bufio.NewScanner(user); lines.Scan(); {
		text += lines.Text()
		if strings.HasPrefix(lines.Text(), "next ") {
			break
		}
	}
	for _, want := range []string{node.Message, status.Reason} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
