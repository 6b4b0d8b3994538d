package fleet_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// node makes a node that says how it stands with some keys.
func node(id string, groups []string, manifests map[string]model.ManifestState) model.Node {
	return model.Node{NodeState: model.NodeState{Node: id, Groups: groups, Manifests: manifests}}
}

func runs(revision uint64, outcome model.Outcome) model.ManifestState {
	return model.ManifestState{Revision: revision, Outcome: outcome}
}

// TestLongReasonsAreCut: what one node reports about itself is in the reason of each assignment.
func TestLongReasonsAreCut(t *testing.T) {
	const key = "group.web.motd"
	long := strings.Repeat("é", 250_000)
	entries := []model.Entry{{Key: key, Revision: 3}}
	for name, n := range map[string]model.Node{
		"message":  {NodeState: model.NodeState{Node: "a", Groups: []string{"web"}, Message: long}},
		"late":     node("a", []string{"web"}, map[string]model.ManifestState{key: {Revision: 2, Late: long}}),
		"rejected": node("a", []string{"web"}, map[string]model.ManifestState{key: {Revision: 2, Seen: 3, Late: "refused: " + long}}),
		"flapping": {NodeState: model.NodeState{Node: "a", Groups: []string{"web"}, Manifests: map[string]model.ManifestState{key: runs(3, model.OutcomeStable)}, Flapping: []model.FlappingState{{Manifest: key, Writer: long}}}},
		"error":    node("a", []string{"web"}, map[string]model.ManifestState{key: {Revision: 3, Outcome: model.OutcomeFailed, Error: long}}),
	} {
		for _, s := range (fleet.Rollout{Entries: entries}).Statuses([]model.Node{n}) {
			if len(s.Reason) > 10_000 || !strings.HasSuffix(s.Reason, "(cut)") {
				t.Errorf("%s: a reason of %d bytes", name, len(s.Reason))
			}
		}
		for _, r := range fleet.Rejections(entries[0], []model.Node{n}) {
			if len(r.Reason) > 10_000 {
				t.Errorf("%s: a rejection of %d bytes", name, len(r.Reason))
			}
		}
	}
}

// TestFlappingIsAReason of the manifest that it is of, which is up to date.
func TestFlappingIsAReason(t *testing.T) {
	entries := []model.Entry{{Key: "group.web.a", Revision: 3}, {Key: "group.web.b", Revision: 3}}
	n := node("a", []string{"web"}, map[string]model.ManifestState{"group.web.a": runs(3, model.OutcomeChanged), "group.web.b": runs(3, model.OutcomeStable)})
	for _, f := range []model.FlappingState{{Resource: model.Ref{Type: "file", Name: "/x"}, Writer: "bash (pid 7)"}, {Resource: model.Ref{Type: "file", Name: "/y"}}} {
		f.Manifest = "group.web.a"
		n.Flapping = append(n.Flapping, f)
	}
	for i, want := range []string{"flapping: file#/x, probably written by bash (pid 7), and 1 more", ""} {
		got := (fleet.Rollout{Entries: entries[i : i+1]}).Statuses([]model.Node{n})[0]
		if got.Reason != want || got.Status != fleet.StatusUpToDate {
			t.Errorf("%s is %s, %q, want %q", got.Key, got.Status, got.Reason, want)
		}
	}
}

// TestUnreadableNodesAreNotDone, whatever may be assigned to them.
func TestUnreadableNodesAreNotDone(t *testing.T) {
	unknown := model.Node{NodeState: model.NodeState{Node: "a"}, Unreadable: "garbage"}
	member, other := unknown, unknown
	member.Groups, other.Groups = []string{"web"}, []string{}
	rollout := fleet.Rollout{Entries: []model.Entry{{Key: "group.all.m", Revision: 1}, {Key: "group.db.m", Revision: 2}, {Key: "group.web.m", Revision: 3}, {Key: "node.a.m", Revision: 4}, {Key: "node.b.m", Revision: 5}}}
	for name, c := range map[string]struct {
		node model.Node
		want string
	}{
		"unknown groups": {unknown, "group.all.m group.db.m group.web.m node.a.m"}, "in one": {member, "group.all.m group.web.m node.a.m"}, "in none": {other, "group.all.m node.a.m"},
	} {
		var keys []string
		for _, s := range rollout.Statuses([]model.Node{c.node}) {
			if s.Node == "b" {
				continue
			}
			keys = append(keys, s.Key)
			if s.Status != fleet.StatusUnreadable || s.Reason != "its state cannot be read: garbage" || s.Done() || !s.Applies() {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if strings.Join(keys, " ") != c.want {
			t.Errorf("%s: %q", name, keys)
		}
		if got := fleet.NewAssigned(rollout.Entries).Statuses(c.node); len(got) != 0 {
			t.Errorf("%s: the overview has %v", name, got)
		}
	}
	if tally := fleet.TallyOf(rollout.Statuses([]model.Node{unknown})); tally.Unreadable != 4 || tally.Open() != 5 {
		t.Errorf("%+v", tally)
	}
}

func TestStatus(t *testing.T) {
	const key = "node.a.motd"
	heard := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rollout := fleet.Rollout{
		Entries: []model.Entry{{Key: key, Revision: 7, Digest: "sha256-7", Time: heard}},
		Later:   map[string]map[uint64]string{key: {8: "sha256-8", 9: ""}},
	}
	digest := func(revision uint64, digest string) model.ManifestState {
		return model.ManifestState{Revision: revision, Digest: digest, Outcome: model.OutcomeStable}
	}
	silent := model.Node{NodeState: model.NodeState{Node: "a"}, Silent: true, Heard: heard}
	stopped := silent
	stopped.Event, stopped.Silent = model.NodeStopped, false
	silentButThere := node("a", nil, map[string]model.ManifestState{key: runs(7, model.OutcomeStable)})
	silentButThere.Silent = true
	stoppedAfter := stopped
	stoppedAfter.Manifests = map[string]model.ManifestState{key: runs(7, model.OutcomeFailed)}
	for name, c := range map[string]struct {
		node   model.Node
		status fleet.Status
		reason string
	}{
		"runs it":                    {node("a", nil, map[string]model.ManifestState{key: runs(7, model.OutcomeStable)}), fleet.StatusUpToDate, ""},
		"runs a later one":           {node("a", nil, map[string]model.ManifestState{key: runs(8, model.OutcomeChanged)}), fleet.StatusUpToDate, ""},
		"runs this":                  {node("a", nil, map[string]model.ManifestState{key: digest(7, "sha256-7")}), fleet.StatusUpToDate, ""},
		"runs what was later":        {node("a", nil, map[string]model.ManifestState{key: digest(8, "sha256-8")}), fleet.StatusUpToDate, ""},
		"runs one of another bucket": {node("a", nil, map[string]model.ManifestState{key: digest(20, "sha256-7")}), fleet.StatusPending, "still at revision 20 of another bucket"},
		"runs the same number":       {node("a", nil, map[string]model.ManifestState{key: digest(7, "sha256-x")}), fleet.StatusPending, "still at revision 7 of another bucket"},
		"a later number of another":  {node("a", nil, map[string]model.ManifestState{key: digest(8, "sha256-x")}), fleet.StatusPending, "still at revision 8 of another bucket"},
		"failed one of another":      {node("a", nil, map[string]model.ManifestState{key: {Revision: 20, Outcome: model.OutcomeFailed}}), fleet.StatusPending, "still at revision 20 of another bucket"},
		"refused one of another":     {node("a", nil, map[string]model.ManifestState{key: {Seen: 20, Outcome: model.OutcomeRefused}}), fleet.StatusPending, "not acknowledged yet"},
		"saw one of another":         {node("a", nil, map[string]model.ManifestState{key: {Seen: 20}}), fleet.StatusPending, "not acknowledged yet"},
		"refused this one":           {node("a", nil, map[string]model.ManifestState{key: {Seen: 7, SeenAt: heard, Late: "refused: unknown key"}}), fleet.StatusRejected, "unknown key"},
		"refused a recreated number": {node("a", nil, map[string]model.ManifestState{key: {Seen: 7, SeenAt: heard.Add(-time.Hour), Late: "refused: unknown key"}}), fleet.StatusPending, "not acknowledged yet"},
		"saw a recreated number":     {node("a", nil, map[string]model.ManifestState{key: {Seen: 7, SeenAt: heard.Add(-time.Hour)}}), fleet.StatusPending, "not acknowledged yet"},
		"refused a later one":        {node("a", nil, map[string]model.ManifestState{key: {Seen: 9, Outcome: model.OutcomeRefused}}), fleet.StatusRejected, "rejected"},
		"failed":                     {node("a", nil, map[string]model.ManifestState{key: {Revision: 7, Outcome: model.OutcomeFailed, Counts: model.Counts{Total: 5, Failed: 1, Skipped: 1, Unmet: 1}}}), fleet.StatusFailed, "5 resources, 1 failed, 1 skipped"},
		"failed with a reason":       {node("a", nil, map[string]model.ManifestState{key: {Revision: 7, Outcome: model.OutcomeFailed, Error: "file#/x: no space left", Counts: model.Counts{Total: 5, Failed: 1}}}), fleet.StatusFailed, "file#/x: no space left (5 resources, 1 failed)"},
		"two failed":                 {node("a", nil, map[string]model.ManifestState{key: {Revision: 7, Outcome: model.OutcomeFailed, Error: "file#/x: no space left\nat all", Counts: model.Counts{Total: 4, Failed: 2, Skipped: 1, Unmet: 1}}}), fleet.StatusFailed, "file#/x: no space left, and 1 more (4 resources, 2 failed, 1 skipped)"},
		"failed to begin":            {node("a", nil, map[string]model.ManifestState{key: {Revision: 7, Outcome: model.OutcomeFailed, Error: "no space left\nand more"}}), fleet.StatusFailed, "no space left"},
		"in force, not run":          {node("a", nil, map[string]model.ManifestState{key: runs(7, "")}), fleet.StatusPending, "accepted, first run not finished"},
		"put off by a limit":         {node("a", nil, map[string]model.ManifestState{key: {Revision: 7, Error: "3 resources are put off"}}), fleet.StatusPending, "3 resources are put off"},
		"runs an earlier one":        {node("a", nil, map[string]model.ManifestState{key: runs(6, model.OutcomeStable)}), fleet.StatusPending, "still at revision 6"},
		"does not apply":             {node("a", nil, map[string]model.ManifestState{key: {Revision: 6, Seen: 7, Outcome: model.OutcomeStable}}), fleet.StatusNotApplicable, "skipped: its condition is false, or it expired"},
		"does not any more":          {node("a", nil, map[string]model.ManifestState{key: {Seen: 7}}), fleet.StatusNotApplicable, "skipped: its condition is false, or it expired"},
		"ran it before":              {node("a", nil, map[string]model.ManifestState{key: {Revision: 7, Seen: 7, Outcome: model.OutcomeStable}}), fleet.StatusNotApplicable, "skipped: its condition is false, or it expired"},
		"says why":                   {node("a", nil, map[string]model.ManifestState{key: {Revision: 6, Seen: 7, Late: "the bundle cannot be fetched"}}), fleet.StatusPending, "the bundle cannot be fetched"},
		"refused":                    {node("a", nil, map[string]model.ManifestState{key: {Revision: 6, Seen: 7, Outcome: model.OutcomeStable, Late: "refused: motd:3:1: unknown key"}}), fleet.StatusRejected, "motd:3:1: unknown key"},
		"would not accept it again":  {node("a", nil, map[string]model.ManifestState{key: {Revision: 7, Outcome: model.OutcomeStable, Late: "refused: not signed"}}), fleet.StatusRejected, "not signed; revision 7 stays in force"},
		"nor a later one":            {node("a", nil, map[string]model.ManifestState{key: {Revision: 8, Outcome: model.OutcomeStable, Late: "refused: not signed"}}), fleet.StatusRejected, "not signed; revision 8 stays in force"},
		"nor a failed one":           {node("a", nil, map[string]model.ManifestState{key: {Revision: 7, Outcome: model.OutcomeFailed, Error: "no space left", Late: "refused: not signed"}}), fleet.StatusFailed, "no space left; rejected: not signed"},
		"is held up, and runs it":    {node("a", nil, map[string]model.ManifestState{key: {Revision: 7, Outcome: model.OutcomeStable, Late: "away"}}), fleet.StatusUpToDate, ""},
		"refused without why":        {node("a", nil, map[string]model.ManifestState{key: {Seen: 7, Outcome: model.OutcomeRefused}}), fleet.StatusRejected, "rejected"},
		"refused an older one":       {node("a", nil, map[string]model.ManifestState{key: {Revision: 5, Seen: 6, Outcome: model.OutcomeRefused}}), fleet.StatusPending, "still at revision 5"},
		"cannot read it":             {model.Node{NodeState: model.NodeState{Node: "a", Message: "node.a: not permitted"}}, fleet.StatusPending, "not acknowledged yet: node.a: not permitted"},
		"nothing said":               {node("a", nil, nil), fleet.StatusPending, "not acknowledged yet"},
		"silent":                     {silent, fleet.StatusUnreachable, "not seen since " + heard.Local().Format(model.TimeFormat)},
		"stopped":                    {stopped, fleet.StatusUnreachable, "stopped, not seen since " + heard.Local().Format(model.TimeFormat)},
		"silent, whatever it ran":    {silentButThere, fleet.StatusUnreachable, "not seen"},
		"stopped after a failure":    {stoppedAfter, fleet.StatusUnreachable, "stopped, not seen since " + heard.Local().Format(model.TimeFormat)},
		"runs a removed one":         {node("a", nil, map[string]model.ManifestState{key: {Seen: 7}, "group.all.motd": runs(3, model.OutcomeStable)}), fleet.StatusNotApplicable, "skipped: its condition is false, or it expired"},
		"another node":               {node("b", []string{"web"}, nil), fleet.StatusUnreachable, "never seen; is an agent running under this name?"},
	} {
		t.Run(name, func(t *testing.T) {
			got := rollout.Statuses([]model.Node{c.node})
			if len(got) != 1 || got[0].Node != "a" || got[0].Key != key || got[0].Desired != 7 || got[0].Status != c.status || got[0].Reason != c.reason {
				t.Errorf("got %+v", got)
			}
			done := c.status == fleet.StatusUpToDate || c.status == fleet.StatusFailed || c.status == fleet.StatusNotApplicable
			if got[0].Done() != done {
				t.Errorf("done is %v", got[0].Done())
			}
		})
	}
}

// Among assignments of one name, a node uses its own, then its groups' in order, then that for all.
func TestStatusesOfOneName(t *testing.T) {
	entries := []model.Entry{
		{Key: "group.all.motd", Revision: 1}, {Key: "group.db.motd", Revision: 2}, {Key: "group.web.motd", Revision: 3}, {Key: "node.a.motd", Revision: 4},
	}
	nodes := []model.Node{
		node("a", []string{"web"}, nil), node("b", []string{"web", "db"}, nil), node("c", []string{"db", "web"}, nil), node("d", nil, nil), node("e", []string{"mail"}, nil),
	}
	keys := func(statuses []fleet.RolloutStatus, wanted ...fleet.Status) map[string]string {
		out := map[string]string{}
		for _, s := range statuses {
			if slices.Contains(wanted, s.Status) {
				out[s.Node] = s.Key
			}
		}
		return out
	}
	all := (fleet.Rollout{Entries: entries}).Statuses(nodes)
	want := map[string]string{"a": "node.a.motd", "b": "group.web.motd", "c": "group.db.motd", "d": "group.all.motd", "e": "group.all.motd"}
	if got := keys(all, fleet.StatusPending); len(all) != 5 || !reflect.DeepEqual(got, want) {
		t.Errorf("all: %+v", all)
	}
	one := (fleet.Rollout{Entries: entries, Keys: []string{"group.web.motd"}}).Statuses(nodes)
	if got := keys(one, fleet.StatusPending); !reflect.DeepEqual(got, map[string]string{"b": "group.web.motd"}) {
		t.Errorf("of the group: %+v", one)
	}
	if got := keys(one, fleet.StatusOverridden); !reflect.DeepEqual(got, map[string]string{"a": "group.web.motd", "c": "group.web.motd"}) {
		t.Errorf("of the group, overridden: %+v", one)
	}
	for _, s := range one {
		if s.Status == fleet.StatusOverridden && !s.Done() {
			t.Errorf("%s is waited for", s.Node)
		}
	}
}

// Where an assignment does not apply to a node, the next of the same name does.
func TestStatusesBehindNotApplicable(t *testing.T) {
	entries := []model.Entry{{Key: "node.a.motd", Revision: 4}, {Key: "group.all.motd", Revision: 3}}
	a := node("a", nil, map[string]model.ManifestState{"node.a.motd": {Seen: 4}, "group.all.motd": runs(3, model.OutcomeStable)})
	got := (fleet.Rollout{Entries: entries}).Statuses([]model.Node{a})
	if len(got) != 2 || got[0].Key != "group.all.motd" || got[0].Status != fleet.StatusUpToDate || got[1].Status != fleet.StatusNotApplicable {
		t.Errorf("got %+v", got)
	}
	// A node also sees the assignments behind the effective one.
	b := node("a", nil, map[string]model.ManifestState{"node.a.motd": runs(4, model.OutcomeStable), "group.all.motd": {Seen: 3}})
	if got = (fleet.Rollout{Entries: entries}).Statuses([]model.Node{b}); len(got) != 1 || got[0].Status != fleet.StatusUpToDate {
		t.Errorf("got %+v", got)
	}
	if got = (fleet.Rollout{Entries: entries, Keys: []string{"group.all.motd"}}).Statuses([]model.Node{b}); len(got) != 1 || got[0].Status != fleet.StatusOverridden {
		t.Errorf("got %+v", got)
	}
}

// An assignment that was never valid on a node leaves the next of its name in
// force there.
func TestStatusBehindOneThatWasNeverValid(t *testing.T) {
	rollout := fleet.Rollout{Entries: []model.Entry{{Key: "group.all.motd", Revision: 1}, {Key: "node.a.motd", Revision: 4}}}
	nodes := []model.Node{node("a", nil, map[string]model.ManifestState{
		"node.a.motd":    {Seen: 4, Late: "refused: garbage; group.all.motd revision 1 stays in force"},
		"group.all.motd": runs(1, model.OutcomeStable),
	})}
	got := rollout.Statuses(nodes)
	if len(got) != 2 || got[0].Status != fleet.StatusUpToDate || got[0].Key != "group.all.motd" || got[1].Status != fleet.StatusRejected {
		t.Errorf("got %+v", got)
	}
}

// Why a node skips a manifest follows from its assignment, where that has one of the
// two reasons.
func TestExplainSkipped(t *testing.T) {
	past := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	const either = "skipped: its condition is false, or it expired"
	for name, c := range map[string]struct {
		terms    string
		revision uint64
		want     string
	}{
		"condition":        {`"when": "false", "expires": "2999-01-01T00:00:00Z"`, 7, "skipped: its condition is false: false"},
		"expired":          {`"when": "false", "expires": "2020-01-02T03:04:05Z"`, 7, "skipped: expired at " + past.Local().Format(model.TimeFormat)},
		"neither":          {`"noop": true`, 7, either},
		"another revision": {`"when": "false"`, 8, either},
		"removed":          {"", 7, either},
	} {
		rollout := fleet.Rollout{Entries: []model.Entry{{Key: "node.a.motd", Revision: 7}}}
		got := rollout.Statuses([]model.Node{node("a", nil, map[string]model.ManifestState{"node.a.motd": {Seen: 7}})})
		err := fleet.ExplainSkipped(t.Context(), func(_ context.Context, key string) (model.Entry, error) {
			if c.terms == "" {
				return model.Entry{}, model.ErrNotFound
			}
			value := `{"protocol": "` + model.ProtocolAssignment + `", "manifest": "muster: {}", ` + c.terms + "}"
			return model.Entry{Key: key, Revision: c.revision, Value: []byte(value)}, nil
		}, got)
		if err != nil || len(got) != 1 || got[0].Status != fleet.StatusNotApplicable || got[0].Reason != c.want {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
	failing := func(context.Context, string) (model.Entry, error) { return model.Entry{}, model.ErrTooLarge }
	err := fleet.ExplainSkipped(t.Context(), failing, []fleet.RolloutStatus{{Reason: "x"}}, []fleet.RolloutStatus{{Reason: either}})
	if !errors.Is(err, model.ErrTooLarge) {
		t.Errorf("error %v", err)
	}
}

// A group's manifest waits while the node runs its own removed or invalid one.
func TestStatusBehindWhatTheNodeHolds(t *testing.T) {
	entries := []model.Entry{{Key: "group.web.motd", Revision: 4}}
	removed := node("a", []string{"web"}, map[string]model.ManifestState{"group.web.motd": {Seen: 4}, "node.a.motd": runs(2, model.OutcomeStable), "node.a.other": runs(3, model.OutcomeStable)})
	got := fleet.Rollout{Entries: entries}.Statuses([]model.Node{removed})
	if len(got) != 1 || got[0].Status != fleet.StatusPending || got[0].Reason != "node.a.motd still runs instead" {
		t.Errorf("removed: %+v", got)
	}
	invalid := node("a", []string{"web"}, map[string]model.ManifestState{"group.web.motd": {Seen: 4}, "node.a.motd": {Seen: 5, Late: "refused: garbage; nothing of motd is in force"}})
	got = fleet.Rollout{Entries: append(entries, model.Entry{Key: "node.a.motd", Revision: 5})}.Statuses([]model.Node{invalid})
	if len(got) != 2 || got[0].Status != fleet.StatusNotApplicable || got[0].Reason != "skipped: node.a.motd holds its place, its condition is false, or it expired" || got[1].Status != fleet.StatusRejected {
		t.Errorf("invalid: %+v", got)
	}
}
