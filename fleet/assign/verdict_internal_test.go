package assign

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

func statusesOf(counts map[fleet.Status]int) []fleet.RolloutStatus {
	var out []fleet.RolloutStatus
	for range counts[fleet.StatusPaused] {
		out = append(out, fleet.RolloutStatus{Node: fmt.Sprintf("sim-%04d", len(out)), Status: fleet.StatusPending, Paused: &model.Paused{By: "ann"}})
	}
	for _, status := range []fleet.Status{fleet.StatusUpToDate, fleet.StatusFailed, fleet.StatusUnreachable, fleet.StatusPending, fleet.StatusRejected} {
		for range counts[status] {
			out = append(out, fleet.RolloutStatus{Node: fmt.Sprintf("sim-%04d", len(out)), Status: status})
		}
	}

	return out
}

// TestNotUpToDate: who failed, is unreachable or pending is counted, and some of each are named.
func TestNotUpToDate(t *testing.T) {
	t.Parallel()
	all := statusesOf(map[fleet.Status]int{fleet.StatusUpToDate: 287, fleet.StatusFailed: 9, fleet.StatusUnreachable: 3, fleet.StatusPending: 1})
	if n := fleet.TallyOf(all).NotUpToDate(); n != 13 {
		t.Errorf("%d are not up to date", n)
	}
	if got, want := notUpToDate(all), "9 failed (sim-0287, sim-0288, sim-0289, …), 3 unreachable (sim-0296, sim-0297, sim-0298), 1 pending (sim-0299)"; got != want {
		t.Error(got)
	}
}

// TestProgress: the line names the awaited nodes, and reports when only unreachable nodes remain.
func TestProgress(t *testing.T) {
	t.Parallel()
	for want, counts := range map[string]map[fleet.Status]int{
		"motd: 2/2 nodes up to date": {fleet.StatusUpToDate: 2},
		"motd: 1/4 nodes up to date, 1 failed, waiting for 1 pending (sim-0003), 1 unreachable (sim-0002)":                             {fleet.StatusUpToDate: 1, fleet.StatusFailed: 1, fleet.StatusUnreachable: 1, fleet.StatusPending: 1},
		"motd: 1/2 nodes up to date, only unreachable nodes remain: 1 unreachable (sim-0001)":                                          {fleet.StatusUpToDate: 1, fleet.StatusUnreachable: 1},
		"motd: 0/3 nodes up to date, only unreachable or paused nodes remain: 1 unreachable (sim-0002), 2 paused (sim-0000, sim-0001)": {fleet.StatusPaused: 2, fleet.StatusUnreachable: 1},
		"motd: 0/2 nodes up to date, only paused nodes remain: 2 paused (sim-0000, sim-0001)":                                          {fleet.StatusPaused: 2},
	} {
		if got := WaitProgress("motd", statusesOf(counts)); got != want {
			t.Error(got)
		}
	}
}

// TestVerdictNamesTheReason: the error names --timeout only if the wait took that long.
func TestVerdictNamesTheReason(t *testing.T) {
	t.Parallel()
	mixed := map[fleet.Status]int{fleet.StatusUpToDate: 1, fleet.StatusRejected: 1, fleet.StatusUnreachable: 1}
	for name, tc := range map[string]struct {
		counts                map[fleet.Status]int
		leave, timedOut, time bool
		reason                string
	}{
		"rejected and unreachable":            {mixed, true, false, false, "; rejected nodes need another push; unreachable nodes apply it when they reconnect, "},
		"rejected and unreachable, timed out": {mixed, false, true, true, ""},
		"rejected and failed":                 {map[fleet.Status]int{fleet.StatusFailed: 1, fleet.StatusRejected: 1}, true, false, false, "(sim-0001); rejected nodes need another push"},
		"rejected and paused":                 {map[fleet.Status]int{fleet.StatusPaused: 1, fleet.StatusRejected: 1}, true, false, false, "paused nodes apply it when their pause ends"},
		"pending":                             {map[fleet.Status]int{fleet.StatusPending: 1}, true, true, true, "(sim-0000)"},
	} {
		w := Verdict{Name: "motd", Timeout: 5 * time.Minute, TimedOut: tc.timedOut, LeaveUnreachable: tc.leave, Run: func(command string) string { return "muster " + command }}
		err := w.Err(t.Context(), statusesOf(tc.counts))
		if err == nil || strings.Contains(err.Error(), "after 5m0s") != tc.time || !strings.Contains(err.Error(), tc.reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNotes: unreachable nodes are reported at once, and again when only they remain, each once.
func TestNotes(t *testing.T) {
	t.Parallel()
	pending := map[fleet.Status]int{fleet.StatusUpToDate: 1, fleet.StatusUnreachable: 4, fleet.StatusPending: 1}
	only := map[fleet.Status]int{fleet.StatusUpToDate: 1, fleet.StatusFailed: 1, fleet.StatusUnreachable: 1, fleet.StatusRejected: 1}
	const (
		some  = "4 unreachable (sim-0001, sim-0002, sim-0003, …), waiting for all"
		those = "only unreachable nodes remain: 1 unreachable (sim-0002), waiting for at most 5m0s; ctrl-C ends it"
	)
	for name, c := range map[string]struct {
		polls []map[fleet.Status]int
		want  []string
	}{
		"some, then only these": {[]map[fleet.Status]int{pending, pending, only, only}, []string{some, "", those, ""}},
		"only these at once":    {[]map[fleet.Status]int{only, pending, only}, []string{those, "", ""}},
		"only paused ones":      {[]map[fleet.Status]int{{fleet.StatusPaused: 1, fleet.StatusPending: 1}, {fleet.StatusUpToDate: 1, fleet.StatusPaused: 1}}, []string{"1 paused (sim-0000), waiting for all", "only paused nodes remain: 1 paused (sim-0000), waiting for at most 5m0s; ctrl-C ends it"}},
		"none":                  {[]map[fleet.Status]int{{fleet.StatusUpToDate: 1, fleet.StatusPending: 2}}, []string{""}},
		"later":                 {[]map[fleet.Status]int{{fleet.StatusPending: 1}, only}, []string{"", those}},
	} {
		n := WaitRemarks{Timeout: 5 * time.Minute}
		for i, counts := range c.polls {
			if got := n.Next(statusesOf(counts)); got != c.want[i] {
				t.Errorf("%s: poll %d: %q, want %q", name, i, got, c.want[i])
			}
		}
	}
	once := WaitRemarks{}
	if got := once.Next(statusesOf(only)); got != "" {
		t.Errorf("who does not wait is told %q", got)
	}
}
