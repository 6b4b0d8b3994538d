package fleetcmd

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// withStatuses compares nodes with their assignments.
func withStatuses(nodes []model.Node, entries []model.Entry) []nodeStatus {
	var out []nodeStatus
	assigned := fleet.NewAssigned(entries)
	for _, r := range view.QueryNodes(nodes, assigned) {
		out = append(out, newNodeStatus(r, assigned))
	}

	return out
}

// TestNodeThatIsAwayIsShownAsSuch checks that the row of an absent node shows its absence and not its last
// outcome.
func TestNodeThatIsAwayIsShownAsSuch(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const key = "group.all.motd"
	for name, c := range map[string]struct {
		event  model.NodeEvent
		silent bool
		want   string
	}{
		"there":               {want: string(model.OutcomeStable)},
		"silent":              {silent: true, want: "unreachable"},
		"stopped":             {event: model.NodeStopped, want: "stopped"},
		"stopped for a while": {event: model.NodeStopped, silent: true, want: "stopped"},
	} {
		state := model.NodeState{Node: "web01", Event: c.event, Started: now.Add(-time.Hour), Manifests: map[string]model.ManifestState{key: {Revision: 7, Outcome: model.OutcomeStable}}}
		node := model.Node{NodeState: state, Silent: c.silent, Heard: now.Add(-time.Minute)}
		for entries, all := range map[string][]model.Entry{"one manifest": {{Key: key, Revision: 7}}, "none": nil} {
			want := c.want
			if entries == "none" && name == "there" {
				want = "unassigned"
			}
			rows := nodeRows(print.Printer{}, withStatuses([]model.Node{node}, all)[0], now)
			if len(rows) != 1 || rows[0][8] != want || (rows[0][2] == "-") != (name != "there") {
				t.Errorf("%s, %s: %s", name, entries, strings.Join(rows[0], " | "))
			}
		}
	}
}

// TestNodeThatRunsWhatIsNotAssigned checks that manifests without an assignment are shown, for example after
// the bucket was recreated.
func TestNodeThatRunsWhatIsNotAssigned(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	state := model.NodeState{Node: "web01", Manifests: map[string]model.ManifestState{
		"group.all.sshd": {Revision: 9, Outcome: model.OutcomeFailed}, "group.all.motd": {Revision: 7, Outcome: model.OutcomeStable}, "node.web01.seen": {Seen: 3},
	}}
	entries := []model.Entry{{Key: "group.all.motd", Revision: 7}}
	n := withStatuses([]model.Node{{NodeState: state, Heard: now}}, entries)[0]
	var got []string
	for _, row := range nodeRows(print.Printer{}, n, now) {
		got = append(got, strings.Join(row[6:], " | "))
	}
	want := "group.all.motd | 7 | stable |  | \ngroup.all.sshd | 9 | unassigned |  | runs, but is not assigned"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// TestNodeThatFloodsIsNamed checks that flooding takes precedence over other messages, and that unknown nodes
// are shown.
func TestNodeThatFloodsIsNamed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	known := model.Node{NodeState: model.NodeState{Node: "web01", Message: "something else", Manifests: map[string]model.ManifestState{"group.all.motd": {Revision: 6}}}, Heard: now}
	flooding := map[string]string{"evil": "flooding: reports", "web01": "flooding: transactions"}
	all := withUnknown([]model.Node{known}, flooding)
	entries := []model.Entry{{Key: "group.all.motd", Revision: 7}}
	for i, want := range []string{"web01 flooding: transactions", "evil flooding: reports"} {
		n := withStatuses(all, entries)[i]
		n.Flooding = flooding[n.Node.Node]
		row := nodeRows(print.Printer{}, n, now)[0]
		if got := row[0] + " " + row[10]; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestNodeAndManifestWithAReason checks that a problem of a node has a separate row, and that outdated
// manifests show since when.
func TestNodeAndManifestWithAReason(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	state := model.NodeState{Node: "web01", Message: "configuration rejected", Manifests: map[string]model.ManifestState{"group.all.motd": {Revision: 6, Seen: 7, Late: "refused: x"}}}
	n := withStatuses([]model.Node{{NodeState: state, Heard: now}}, []model.Entry{{Key: "group.all.motd", Revision: 7, Time: now.Add(-47 * time.Minute)}})[0]
	rows := nodeRows(print.Printer{}, n, now)
	if len(rows) != 2 || strings.Join(rows[0][6:], "|") != "-||||configuration rejected" || strings.Join(rows[1][6:], "|") != "group.all.motd|6 of 7|rejected|47m|x" {
		t.Errorf("%q", rows)
	}
}

// TestOneNodeDoesNotFillTheDisk: a node chooses its version, groups and manifests, within
// 512 KiB. A table of them was thousands of times as large.
func TestOneNodeDoesNotFillTheDisk(t *testing.T) {
	t.Parallel()
	state := model.NodeState{Node: "web01", Version: strings.Repeat("v", 250_000), Message: strings.Repeat("m", 1000), Manifests: map[string]model.ManifestState{}}
	for i := range 11_000 {
		state.Manifests[fmt.Sprintf("group.all.a%05d", i)] = model.ManifestState{Revision: 1}
		state.Groups = append(state.Groups, strings.Repeat("g", 50))
	}
	n := withStatuses([]model.Node{{NodeState: state}}, []model.Entry{{Key: "group.all.motd", Revision: 7}})[0]
	rows := nodeRows(print.Printer{}, n, time.Now())
	size := 0
	for _, row := range rows {
		size += len(strings.Join(row, " "))
	}
	if last := rows[len(rows)-1]; len(rows) > 23 || size > 10_000 || last[6] != "and 10980 more" || !strings.HasSuffix(rows[0][5], " and 10980 more") || len(n.Statuses) < 11_000 {
		t.Errorf("%d rows of %d bytes, the last is %q, groups %.100q", len(rows), size, last, rows[0][5])
	}
}
