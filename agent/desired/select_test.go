package desired

import (
	"slices"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

func TestByPrecedence(t *testing.T) {
	units := map[string]*unit{}
	for _, key := range []string{"group.all.motd", "group.web.motd", "group.all.ntp", "node.n.motd", "group.prod.motd"} {
		units[key] = newUnit(key)
	}
	got := map[string][]string{}
	for name, same := range byPrecedence(units, model.Families("n", []string{"prod", "web"})) {
		for _, u := range same {
			got[name] = append(got[name], u.key)
		}
	}
	if want := []string{"node.n.motd", "group.prod.motd", "group.web.motd", "group.all.motd"}; !slices.Equal(got["motd"], want) {
		t.Errorf("%v, want %v", got["motd"], want)
	}
	if want := []string{"group.all.ntp"}; !slices.Equal(got["ntp"], want) {
		t.Errorf("%v, want %v", got["ntp"], want)
	}
}

func TestSelectAssignment(t *testing.T) {
	version := &Version{}
	type answer struct {
		version  *Version
		assigned bool
		good     bool
	}
	valid, invalid, wasValid, elsewhere := answer{version, true, true}, answer{nil, true, false}, answer{nil, true, true}, answer{nil, false, true}
	for name, c := range map[string]struct {
		own, group answer
		want       string
		rest       int
	}{
		"the node's own":               {valid, valid, "own", 1},
		"for another node":             {elsewhere, valid, "group", 0},
		"never valid":                  {invalid, valid, "group", 0},
		"not valid any more":           {wasValid, valid, "", 0},
		"the group's alone is invalid": {valid, invalid, "own", 1},
		"nothing is valid":             {invalid, invalid, "", 0},
	} {
		own, group := &unit{key: "own"}, &unit{key: "group"}
		answers := map[*unit]answer{own: c.own, group: c.group}
		for u, a := range answers {
			if a.good {
				u.record.Good = &model.Entry{}
			}
		}
		u, v, rest := selectAssignment([]*unit{own, group}, func(u *unit) (*Version, bool) { return answers[u].version, answers[u].assigned })
		got := ""
		if u != nil {
			got = u.key
		}
		if got != c.want || (v != nil) != (c.want != "") || len(rest) != c.rest {
			t.Errorf("%s: %q and %d more, want %q and %d", name, got, len(rest), c.want, c.rest)
		}
	}
}

func TestCandidatesRunInTheOrderOf(t *testing.T) {
	of := func(rank, priority int, name string) candidate {
		return candidate{unit: &unit{name: name}, rank: rank, version: &Version{Assignment: model.Assignment{Priority: priority}}}
	}
	for what, c := range map[string]struct{ first, second candidate }{
		"family":   {of(0, 9, "z"), of(1, 0, "a")},
		"priority": {of(1, 1, "z"), of(1, 2, "a")},
		"name":     {of(1, 1, "a"), of(1, 1, "b")},
	} {
		if c.first.compare(c.second) >= 0 || c.second.compare(c.first) <= 0 {
			t.Errorf("not by %s", what)
		}
	}
}

// TestResolutionIsUsedOnce from put to report, unless its inputs may have changed.
func TestResolutionIsUsedOnce(t *testing.T) {
	made := basis{facts: 3, changes: 2, at: time.Unix(100, 0)}
	for name, c := range map[string]struct {
		static, used bool
		now          basis
		want         bool
	}{
		"at once":              {false, false, made, true},
		"a moment later":       {false, false, basis{3, 2, made.at.Add(time.Second)}, true},
		"used before":          {false, true, made, false},
		"other facts":          {false, false, basis{4, 2, made.at}, false},
		"the node changed":     {false, false, basis{3, 3, made.at}, false},
		"long ago":             {false, false, basis{3, 2, made.at.Add(time.Minute)}, false},
		"nothing but its text": {true, true, basis{9, 9, made.at.Add(time.Hour)}, true},
	} {
		r := &Resolution{Resolved: &manifest.Resolved{Static: c.static}, basis: made, used: c.used}
		in := Input{Facts: Facts{Gathered: c.now.facts}, Changes: c.now.changes, Now: c.now.at}
		if got := r.Use(in); got != c.want || !r.used {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestUnitState: what the node publishes about a key.
func TestUnitState(t *testing.T) {
	one := &Version{Entry: model.Entry{Revision: 1}, Assignment: model.Assignment{Digest: "d"}}
	first, second := &model.Entry{Revision: 1}, &model.Entry{Revision: 2}
	for name, c := range map[string]struct {
		unit unit
		want model.ManifestState
	}{
		"nothing is known":    {unit{}, model.ManifestState{}},
		"active":              {unit{active: one, newest: first}, model.ManifestState{Revision: 1, Digest: "d"}},
		"not read":            {unit{active: one}, model.ManifestState{Revision: 1, Digest: "d"}},
		"the newest rejected": {unit{active: one, newest: second, late: reason{true, "no"}}, model.ManifestState{Revision: 1, Digest: "d", Seen: 2, Late: "refused: no; stays"}},
		"the newest waits":    {unit{newest: second, late: reason{false, "away"}}, model.ManifestState{Seen: 2, Late: "away"}},
		"stale":               {unit{active: one, newest: first, stale: reason{false, "away"}}, model.ManifestState{Revision: 1, Digest: "d", Late: "away"}},
	} {
		if got := c.unit.state(func(*unit) string { return "stays" }); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
