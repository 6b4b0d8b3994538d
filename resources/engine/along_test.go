package engine_test

import (
	"slices"
	"testing"
)

// TestWhatIsMadeOnTheWay checks implicit creation: it serves resources with missing parents in any order of
// the document, and changes no order otherwise.
func TestWhatIsMadeOnTheWay(t *testing.T) {
	const maker, user = "rel deep value=1 along=value:dir makes=dir", "thing file value=1 missing=dir"
	for name, c := range map[string]struct {
		lines   []string
		there   string
		actions []string
		want    []string
	}{
		"before":            {lines: []string{maker, user}, actions: []string{"set deep", "set file"}, want: []string{"rel#deep changed", "thing#file changed"}},
		"after":             {lines: []string{user, "thing x value=1", maker}, actions: []string{"set deep", "set file", "set x"}, want: []string{"thing#file changed", "thing#x changed", "rel#deep changed"}},
		"not missing":       {lines: []string{user, maker}, there: "dir", actions: []string{"set file", "set deep"}, want: []string{"thing#file changed", "rel#deep changed"}},
		"among others":      {lines: []string{user, "rel other along=value:no", maker + " noop=true", "rel more value=1 along=value:dir makes=dir"}, actions: []string{"set more", "set file"}, want: []string{"thing#file changed", "rel#other stable", "rel#deep noop", "rel#more changed"}},
		"that waits":        {lines: []string{user, "thing x value=1", maker + " require=thing#x"}, actions: []string{"set x", "set deep"}, want: []string{"thing#file failed", "thing#x changed", "rel#deep changed"}},
		"that needs it":     {lines: []string{user, maker + " require=thing#file"}, want: []string{"thing#file failed", "rel#deep unmet"}},
		"that fails":        {lines: []string{user, maker + " fail_at=apply"}, actions: []string{"tried deep"}, want: []string{"thing#file failed", "rel#deep failed"}},
		"that needs more":   {lines: []string{user, maker + " missing=top", "rel top2 value=1 along=value:top makes=top"}, actions: []string{"set top2", "set deep", "set file"}, want: []string{"thing#file changed", "rel#deep changed", "rel#top2 changed"}},
		"two of them":       {lines: []string{"thing file value=1 missing=top|dir", maker, "rel top2 value=1 along=value:top makes=top"}, actions: []string{"set top2", "set deep", "set file"}, want: []string{"thing#file changed", "rel#deep changed", "rel#top2 changed"}},
		"that needs user":   {lines: []string{"rel a value=1 missing=b along=value:a makes=x", "rel c value=1 missing=a along=value:b makes=b"}, want: []string{"rel#a failed", "rel#c failed"}},
		"brought by better": {lines: []string{user, maker, "rel dir value=1"}, actions: []string{"set deep", "set file", "set dir"}, want: []string{"thing#file changed", "rel#deep changed", "rel#dir changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.there != "" {
				w.m.set(c.there, "1")
			}
			w.run(w.graph(c.lines...))
			w.outcomes(c.want...)
			equal(t, w.m.actions(), c.actions)
		})
	}
}

// TestNoopKnowsWhatIsMadeOnTheWay checks that noop fails where a run fails.
func TestNoopKnowsWhatIsMadeOnTheWay(t *testing.T) {
	const maker, user = "rel deep value=1 along=value:dir makes=dir", "thing file value=1 missing=dir"
	for name, c := range map[string]struct{ lines, want []string }{
		"before":               {[]string{maker, user}, []string{"rel#deep noop", "thing#file skipped"}},
		"after":                {[]string{user, maker}, []string{"thing#file skipped", "rel#deep noop"}},
		"planned all the same": {[]string{user + " fail_at=plan-missing", maker}, []string{"thing#file noop", "rel#deep noop"}},
		"never changed":        {[]string{maker + " noop=true", user}, []string{"rel#deep noop", "thing#file failed"}},
		"that needs it":        {[]string{user, maker + " require=thing#file"}, []string{"thing#file failed", "rel#deep unmet"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.opts.Env.Scope.Noop = true
			w.run(w.graph(c.lines...))
			w.outcomes(c.want...)
			if tx := w.txs["thing#file"]; tx.Skipped && tx.NoopMessage != "unknown until rel#deep is applied" {
				t.Fatal(tx.NoopMessage)
			}
		})
	}
}

// TestChangedOutOfTurnIsChangedOnce checks that a resource that ran early does not join a later
// batch.
func TestChangedOutOfTurnIsChangedOnce(t *testing.T) {
	w := newWorld(t)
	w.run(w.graph("broad file value=1 missing=dir", "broad x value=1", "broad deep value=1 along=value:dir fail_at=apply"))
	w.outcomes("broad#file failed", "broad#x changed", "broad#deep failed")
	actions := w.m.actions()
	slices.Sort(actions)
	equal(t, actions, []string{"set x", "tried deep"})
}
