package schedule

import (
	"reflect"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

func TestNextDue(t *testing.T) {
	now := time.Unix(100, 0)
	before, longBefore, later := now.Add(-time.Second), now.Add(-time.Minute), now.Add(time.Second)
	asked := Wake{Cause: model.CauseHealth, At: before}
	for name, c := range map[string]struct {
		due   map[string]Wake
		turns map[string]*turn
		key   string
		want  Wake
	}{
		"nothing":                           {map[string]Wake{}, map[string]*turn{"a": {next: later}, "b": {next: later}}, "", Wake{}},
		"asked for":                         {map[string]Wake{"b": asked}, map[string]*turn{"a": {next: later}, "b": {next: later}}, "b", asked},
		"the first that was asked for":      {map[string]Wake{"a": asked, "b": {Cause: model.CauseManifest, At: before}}, map[string]*turn{"a": {}, "b": {}}, "a", asked},
		"asked for before an interval":      {map[string]Wake{"b": asked}, map[string]*turn{"a": {next: longBefore}, "b": {next: later}}, "b", asked},
		"an interval":                       {map[string]Wake{}, map[string]*turn{"a": {next: later}, "b": {next: now}}, "b", Wake{Cause: model.CauseSchedule, At: now}},
		"over for longest":                  {map[string]Wake{}, map[string]*turn{"a": {next: before}, "b": {next: longBefore}}, "b", Wake{Cause: model.CauseSchedule, At: now}},
		"a change that is still to be made": {map[string]Wake{}, map[string]*turn{"a": {next: now, pending: true}, "b": {next: later}}, "a", Wake{Cause: model.CauseManifest, At: now}},
		"asked for, but not active":         {map[string]Wake{"c": asked}, map[string]*turn{"a": {next: later}, "b": {next: later}}, "", Wake{}},
	} {
		key, w := nextDue([]string{"a", "b"}, c.due, c.turns, now, func(string, bool) bool { return true })
		if key != c.key || key != "" && !reflect.DeepEqual(w, c.want) {
			t.Errorf("%s: %q for %+v, want %q for %+v", name, key, w, c.key, c.want)
		}
	}
}

func TestIsPending(t *testing.T) {
	for _, c := range []struct {
		cause   model.Cause
		outcome model.Outcome
		want    bool
	}{
		{model.CauseManifest, model.OutcomeFailed, true},
		{model.CauseManifest, model.OutcomeNotRun, true},
		{model.CauseCommand, model.OutcomeFailed, true},
		{model.CauseManifest, model.OutcomeChanged, false},
		{model.CauseManifest, model.OutcomeNoop, false},
		{model.CauseSchedule, model.OutcomeFailed, false},
		{model.CauseHealth, model.OutcomeNotRun, false},
	} {
		if got := isPending(c.cause, c.outcome); got != c.want {
			t.Errorf("%s, %s: %v", c.cause, c.outcome, got)
		}
	}
}
