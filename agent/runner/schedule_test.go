package runner

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

func TestNextDue(t *testing.T) {
	now := time.Unix(100, 0)
	before, longBefore, later := now.Add(-time.Second), now.Add(-time.Minute), now.Add(time.Second)
	asked := Wake{Cause: model.CauseHealth, At: before}
	for name, c := range map[string]struct {
		due     map[string]Wake
		turns   map[string]*turn
		pending bool
		key     string
		want    Wake
	}{
		"nothing":                           {map[string]Wake{}, map[string]*turn{"a": {next: later}, "b": {next: later}}, false, "", Wake{}},
		"asked for":                         {map[string]Wake{"b": asked}, map[string]*turn{"a": {next: later}, "b": {next: later}}, false, "b", asked},
		"the first that was asked for":      {map[string]Wake{"a": asked, "b": {Cause: model.CauseManifest, At: before}}, map[string]*turn{"a": {}, "b": {}}, false, "a", asked},
		"asked for before an interval":      {map[string]Wake{"b": asked}, map[string]*turn{"a": {next: longBefore}, "b": {next: later}}, false, "b", asked},
		"an interval":                       {map[string]Wake{}, map[string]*turn{"a": {next: later}, "b": {next: now}}, false, "b", Wake{Cause: model.CauseSchedule, At: now}},
		"over for longest":                  {map[string]Wake{}, map[string]*turn{"a": {next: before}, "b": {next: longBefore}}, false, "b", Wake{Cause: model.CauseSchedule, At: now}},
		"a change that is still to be made": {map[string]Wake{}, map[string]*turn{"a": {next: now}, "b": {next: later}}, true, "a", Wake{Cause: model.CauseManifest, At: now}},
		"asked for, but not active":         {map[string]Wake{"c": asked}, map[string]*turn{"a": {next: later}, "b": {next: later}}, false, "", Wake{}},
	} {
		s := Schedule{due: due{whole: c.due}, turns: c.turns, pending: func(key string) (bool, bool) { return c.pending && key == "a", false }}
		key, w := s.nextDue([]string{"a", "b"}, now, always)
		if key != c.key || key != "" && !reflect.DeepEqual(w, c.want) {
			t.Errorf("%s: %q for %+v, want %q for %+v", name, key, w, c.key, c.want)
		}
	}
}

// TestPartBesideItsFullRun: a full run that waits does not block a partial run, unless a user requested the
// full run.
func TestPartBesideItsFullRun(t *testing.T) {
	now := time.Unix(100, 0)
	part := []model.Ref{{Type: "file", Name: "/a"}}
	none := Wake{}
	for name, c := range map[string]struct {
		whole         model.Cause
		busy          bool
		first, second Wake
	}{
		"the whole may run":          {model.CauseSchedule, false, Wake{Cause: model.CauseDrift, At: now}, none},
		"a whole is in progress":     {model.CauseSchedule, true, Wake{Cause: model.CauseDrift, At: now, Part: part}, none},
		"somebody asked for a whole": {model.CauseManifest, true, none, none},
		"and that may run":           {model.CauseManifest, false, Wake{Cause: model.CauseManifest, At: now}, none},
	} {
		s := NewSchedule(nonePending)
		s.Ask("a", Wake{Cause: c.whole, At: now})
		s.Ask("a", Wake{Cause: model.CauseDrift, At: now, Part: part})
		s.of("a").next = now.Add(time.Hour)
		may := func(_ string, part []model.Ref) ([]model.Ref, bool) { return part, part != nil || !c.busy }
		for _, want := range []Wake{c.first, c.second} {
			key, w := s.Take([]string{"a"}, now, may)
			if key == "" {
				w = none
			}
			if !reflect.DeepEqual(w, want) {
				t.Errorf("%s: %+v, want %+v", name, w, want)
			}
		}
		if key, w := s.Take([]string{"a"}, now, always); (key != "") != (c.busy) || key != "" && w.Cause != c.whole && w.Cause != model.CauseManifest {
			t.Errorf("%s: once nothing is in progress %q for %+v", name, key, w)
		}
	}
	s := NewSchedule(nonePending)
	s.Ask("a", Wake{Cause: model.CauseSchedule, At: now})
	s.Ask("a", Wake{Cause: model.CauseDrift, At: now, Part: part})
	s.Forget("a")
	s.of("a").next = now.Add(time.Hour) // it is assigned again
	if key, w := s.Take([]string{"a"}, now, always); key != "" {
		t.Errorf("forgotten, and due for %+v", w)
	}
}

// nonePending reports no pending change.
func nonePending(string) (pending, failed bool) { return false, false }

// always lets everything run.
func always(_ string, part []model.Ref) ([]model.Ref, bool) { return part, true }

// TestSomeOfAPart: the resources that cannot run stay due.
func TestSomeOfAPart(t *testing.T) {
	now := time.Now()
	a, b := model.Ref{Type: "file", Name: "/a"}, model.Ref{Type: "exec", Name: "b"}
	s := NewSchedule(nonePending)
	s.Ask("m", Wake{Cause: model.CauseDrift, At: now, Part: []model.Ref{b, a}})
	s.of("m").next = now.Add(time.Hour)
	files := func(_ string, part []model.Ref) ([]model.Ref, bool) {
		now := slices.DeleteFunc(slices.Clone(part), func(ref model.Ref) bool { return ref.Type != "file" })
		return now, len(now) > 0
	}
	if _, w := s.Take([]string{"m"}, now, files); !reflect.DeepEqual(w, Wake{Cause: model.CauseDrift, At: now, Part: []model.Ref{a}}) {
		t.Errorf("taken %+v", w)
	}
	if key, w := s.Take([]string{"m"}, now, files); key != "" {
		t.Errorf("taken %+v, of which nothing may run", w)
	}
	if _, w := s.Take([]string{"m"}, now, always); !reflect.DeepEqual(w, Wake{Cause: model.CauseDrift, At: now, Part: []model.Ref{b}}) {
		t.Errorf("taken %+v", w)
	}
	if key, w := s.Take([]string{"m"}, now, always); key != "" {
		t.Errorf("taken %+v twice", w)
	}
}

// TestPostponedFullRun: it stays a full run after other requests.
func TestPostponedFullRun(t *testing.T) {
	now := time.Now()
	part := []model.Ref{{Type: "file", Name: "/a"}}
	s := NewSchedule(nonePending)
	s.Postpone("a", Wake{Cause: model.CauseManifest, At: now})
	s.Ask("a", Wake{Cause: model.CauseDrift, At: now, Part: part})
	if _, w := s.Take([]string{"a"}, now, always); !reflect.DeepEqual(w.Part, part) {
		t.Errorf("taken %+v", w)
	}
	s.Postpone("a", Wake{Cause: model.CauseDrift, At: now, Part: part})
	if _, w := s.Take([]string{"a"}, now.Add(time.Hour), always); w.Part != nil || w.Cause != model.CauseManifest {
		t.Errorf("taken %+v", w)
	}
}

// TestRetries: a run after a failure is a retry, unless a new request joins it.
func TestRetries(t *testing.T) {
	t.Parallel()
	now := time.Now()
	part := []model.Ref{{Type: "file", Name: "a"}}
	for name, c := range map[string]struct {
		pending, failed bool
		prepare         func(s *Schedule)
		cause           model.Cause
		want            bool
	}{
		"a change that failed": {true, true, func(*Schedule) {}, model.CauseManifest, true},
		"one that is put off":  {true, false, func(*Schedule) {}, model.CauseManifest, false},
		"a later revision":     {true, true, func(s *Schedule) { s.Ask("a", Wake{Cause: model.CauseManifest, At: now}) }, model.CauseManifest, false},
		"a scheduled one":      {false, true, func(*Schedule) {}, model.CauseSchedule, false},
		"a part":               {false, false, func(s *Schedule) { s.Ask("a", Wake{Cause: model.CauseDrift, At: now, Part: part, Retry: true}) }, model.CauseDrift, true},
		"a part, and what drifted": {false, false, func(s *Schedule) {
			s.Ask("a", Wake{Cause: model.CauseDrift, At: now, Part: part, Retry: true})
			s.Ask("a", Wake{Cause: model.CauseDrift, At: now, Part: part})
		}, model.CauseDrift, false},
	} {
		s := NewSchedule(func(string) (pending, failed bool) { return c.pending, c.failed })
		s.Within("a", 0)
		c.prepare(s)
		if key, w := s.Take([]string{"a"}, now.Add(time.Minute), always); key != "a" || w.Cause != c.cause || w.Retry != c.want {
			t.Errorf("%s: %q, %+v", name, key, w)
		}
	}
}
