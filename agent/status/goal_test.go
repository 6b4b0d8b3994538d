package status_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
)

func TestUnconverged(t *testing.T) {
	const key = "group.all.motd"
	known := model.Sync{At: time.Now()}
	for name, c := range map[string]struct {
		state   model.ManifestState
		last    *model.LastRun
		message string
		away    string
		sync    model.Sync
		active  bool
		want    []string
	}{
		"stable":                   {state: model.ManifestState{Outcome: model.OutcomeStable}, sync: known, active: true},
		"changed, NATS away":       {state: model.ManifestState{Outcome: model.OutcomeChanged}, sync: model.Sync{Err: errors.New("away")}, away: "away", active: true, message: "away"},
		"never known":              {sync: model.Sync{Err: errors.New("away")}, want: []string{"the assignments are not known: away"}},
		"never answered":           {want: []string{"the assignments are not known: the bucket did not answer"}},
		"another one in its place": {sync: known},
		"something with the node":  {sync: known, message: "x", want: []string{"x"}},
		"failed":                   {state: model.ManifestState{Outcome: model.OutcomeFailed, Error: "x"}, sync: known, active: true, want: []string{key + ": failed: x"}},
		"not run":                  {sync: known, active: true, want: []string{key + ": it has not run"}},
		"noop":                     {state: model.ManifestState{Outcome: model.OutcomeNoop, Counts: model.Counts{Noop: 2}}, sync: known, active: true, want: []string{key + ": 2 of its resources would change, and it is in noop"}},
		"a family that cannot be read": {state: model.ManifestState{Outcome: model.OutcomeStable}, active: true, sync: model.Sync{Known: []string{"node.web01", "group.all"}, Err: errors.New("group.db: not permitted")},
			message: "group.db: not permitted", want: []string{"the assignments are not known: group.db: not permitted"}},
		"no family can be read, though NATS is there": {state: model.ManifestState{Outcome: model.OutcomeStable}, active: true, sync: model.Sync{Err: errors.New("not permitted")}, want: []string{"the assignments are not known: not permitted"}},
		"never reached": {sync: model.Sync{Err: errors.New("away")}, away: "NATS rejected user web01", want: []string{"the assignments are not known: NATS rejected user web01"}},
		"two failed": {state: model.ManifestState{Outcome: model.OutcomeFailed, Error: "x", Counts: model.Counts{Failed: 2}}, last: &model.LastRun{Errors: []string{"x", "y"}}, sync: known, active: true,
			want: []string{key + ": failed: x", key + ": failed: y"}},
		"many failed": {state: model.ManifestState{Outcome: model.OutcomeFailed, Error: "x", Counts: model.Counts{Failed: 12}}, last: &model.LastRun{Errors: []string{"x", "y"}}, sync: known, active: true,
			want: []string{key + ": failed: x", key + ": failed: y", key + ": failed: and 10 more (see muster fleet reports)"}},
		"a part failed after the last run": {state: model.ManifestState{Outcome: model.OutcomeFailed, Error: "z"}, last: &model.LastRun{Errors: []string{"x", "y"}}, sync: known, active: true, want: []string{key + ": failed: z"}},
		"rejected":                         {state: model.ManifestState{Late: "refused: x"}, sync: known, want: []string{key + ": refused: x"}},
	} {
		var active []string
		if c.active {
			active = []string{key}
		}
		found := model.AgentStatus{Manifests: []model.AssignedManifest{{Key: key, State: c.state, Last: c.last}}}
		if c.message != "" {
			found.Notices = []string{c.message}
		}
		got := status.Unconverged(found, active, c.sync, c.away)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestErr(t *testing.T) {
	if err := (status.Goal{}).Err(status.Result{}); err != nil {
		t.Errorf("without a goal: %v", err)
	}
	once := status.Goal{Once: true}
	if err := once.Err(status.Result{Reached: true}); err != nil {
		t.Errorf("reached: %v", err)
	}
	for _, r := range []status.Result{{}, {Reached: true, Reasons: []string{"a", "b"}}} {
		if err := once.Err(r); !errors.Is(err, status.ErrUnconverged) {
			t.Errorf("%+v gives %v", r, err)
		}
	}
}
