package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// TestNoopDoesNotTrustGuards checks that noop does not trust the result of a guard after earlier
// changes. A negative result is unknown, a positive result is conditional.
func TestNoopDoesNotTrustGuards(t *testing.T) {
	const unknown = "unknown until thing#a is applied"
	const provided = "Would have set g, if its guards allow it after thing#a is applied"
	cases := map[string]struct {
		lines []string
		want  string // the noop message of guarded#g, empty if it is stable
		asked bool
	}{
		"a requirement that would change":       {[]string{"thing a value=1", "guarded g value=1 guard=door require=thing#a"}, unknown, true},
		"a subscription that would change":      {[]string{"thing a value=1", "guarded g value=1 guard=door subscribe=thing#a"}, unknown, true},
		"a requirement of a stable requirement": {[]string{"thing a value=1", "thing b require=thing#a", "guarded g value=1 guard=door require=thing#b"}, unknown, true},
		"a requirement that is unknown":         {[]string{"thing a value=1", "guarded b value=1 guard=door require=thing#a", "guarded g value=1 guard=door require=guarded#b"}, unknown, true},
		"the last of several":                   {[]string{"thing b value=1", "thing a value=1", "guarded g value=1 guard=door require=thing#a,thing#b"}, unknown, true},
		"an automatic dependence":               {[]string{"rel a value=1", "guarded g value=1 guard=door needs=value:a"}, "unknown until rel#a is applied", true},
		"a guard that would let it now":         {[]string{"thing a value=1", "guarded g value=1 guard=open require=thing#a"}, provided, true},
		"a guard that cannot be asked yet":      {[]string{"thing a value=1", "guarded g value=1 guard=broken require=thing#a"}, unknown, true},
		"nothing it depends on would change":    {[]string{"thing a value=1", "thing b", "guarded g value=1 guard=door require=thing#b"}, "", true},
		"a guard that lets it":                  {[]string{"thing a value=1", "guarded g value=1 guard=open"}, "Would have set g", true},
		"without a guard it is known":           {[]string{"thing a value=1", "guarded g value=1 require=thing#a"}, "Would have set g", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.m.set("open", "1")
			w.opts.Env.Scope.Noop = true
			run := w.run(w.graph(c.lines...))
			tx := w.txs["guarded#g"]
			if tx.NoopMessage != c.want || !run.OK() {
				t.Fatalf("%+v", tx)
			}
			if strings.HasPrefix(c.want, "unknown") && (!tx.Skipped || tx.Changed || tx.SkipReason != c.want) {
				t.Fatalf("%+v", tx)
			}
			if got := slices.Contains(w.m.actions(), "guard g"); got != c.asked {
				t.Fatalf("the guard was asked: %v", got)
			}
		})
	}
}

// TestRealRunBesideANoopResourceAsksItsGuards checks that a real run trusts guards, because noop
// resources do not change.
func TestRealRunBesideANoopResourceAsksItsGuards(t *testing.T) {
	w := newWorld(t)
	w.run(w.graph("thing a value=1 noop=true", "guarded g value=1 guard=door require=thing#a"))
	w.outcomes("thing#a noop", "guarded#g stable")
	w.run(w.graph("thing a value=1", "guarded g value=1 guard=a require=thing#a noop=true"))
	w.outcomes("thing#a changed", "guarded#g noop")
}

func TestNoopRefreshByWhatIsUnknown(t *testing.T) {
	w := newWorld(t)
	w.opts.Env.Scope.Noop = true
	w.m.set("s", "x")
	w.run(w.graph("thing a value=1", "guarded g value=1 guard=door require=thing#a",
		"svc s value=x subscribe=guarded#g", "svc other value=x subscribe=guarded#g", "svc sure value=x subscribe=guarded#g,thing#a"))
	w.outcomes("thing#a noop", "guarded#g skipped", "svc#s skipped", "svc#other noop", "svc#sure noop")
	for ref, want := range map[string]string{
		"svc#s": "unknown until thing#a is applied", "svc#other": "Would have set other", "svc#sure": "Would have refreshed sure",
	} {
		if got := w.txs[ref].NoopMessage; got != want {
			t.Errorf("%s: %q", ref, got)
		}
	}
}

// TestCommandsKnowThatNothingIsToBeChanged checks that a muster process that a guard starts changes
// no more than its run.
func TestCommandsKnowThatNothingIsToBeChanged(t *testing.T) {
	const variable = "MUSTER_NOOP=1"
	cases := map[string]struct {
		line  string
		noop  bool
		cause model.Cause
		want  bool
	}{
		"a noop run":              {line: "guarded g value=1 guard=door", noop: true, want: true},
		"a noop resource":         {line: "guarded g value=1 guard=door noop=true", want: true},
		"drift that is reported":  {line: "guarded g value=1 guard=door drift=report", cause: model.CauseSchedule, want: true},
		"a run that changes":      {line: "guarded g value=1 guard=door"},
		"drift that is asked for": {line: "guarded g value=1 guard=door drift=report", cause: model.CauseCommand},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.opts.Env.Scope.Noop = c.noop
			w.opts.RunID, w.opts.Parents = "r2", []string{"r0", "r1"}
			if c.cause != "" {
				w.opts.Cause = c.cause
			}
			w.run(w.graph(c.line))
			want := []string{"MUSTER_RUN=r0,r1,r2", "MUSTER_STATE_DIR=" + w.opts.Env.Host.StateDir()}
			if c.want {
				want = append(want, variable)
			}
			equal(t, w.m.environment, want)
		})
	}
}

// TestNoopOfOneResourceRefreshesNobodyInNoopEither checks that a noop resource causes no refresh in
// a noop run.
func TestNoopOfOneResourceRefreshesNobodyInNoopEither(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		cause model.Cause
		want  []string
	}{
		"a refresh":                {[]string{"thing a value=1 noop=true", "svc s subscribe=thing#a"}, "", []string{"thing#a noop", "svc#s stable"}},
		"a refresh of a noop one":  {[]string{"thing a value=1 noop=true", "svc s subscribe=thing#a noop=true"}, "", []string{"thing#a noop", "svc#s noop"}},
		"drift that is reported":   {[]string{"thing a value=1 drift=report", "svc s subscribe=thing#a"}, model.CauseSchedule, []string{"thing#a noop", "svc#s stable"}},
		"a guard":                  {[]string{"thing a value=1 noop=true", "guarded g value=1 guard=open require=thing#a"}, "", []string{"thing#a noop", "guarded#g noop"}},
		"a guard behind":           {[]string{"thing x value=1", "thing a value=1 noop=true require=thing#x", "guarded g value=1 guard=door require=thing#a"}, "", []string{"thing#x noop", "thing#a noop", "guarded#g skipped"}},
		"what it would bring":      {[]string{"rel app value=1 noop=true", "thing user value=1 missing=app"}, "", []string{"rel#app noop", "thing#user failed"}},
		"what it would bring both": {[]string{"rel app value=1 noop=true", "thing user value=1 missing=app noop=true"}, "", []string{"rel#app noop", "thing#user skipped"}},
		"a refresh by the unknown": {[]string{"rel app value=1", "thing user value=1 missing=app noop=true", "svc s subscribe=thing#user"}, "", []string{"rel#app noop", "thing#user skipped", "svc#s stable"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.m.set("open", "1")
			w.opts.Env.Scope.Noop = true
			if c.cause != "" {
				w.opts.Cause = c.cause
			}
			w.run(w.graph(c.lines...))
			w.outcomes(c.want...)
		})
	}
}

// TestNoopNamesWhatLatePropertiesWaitFor checks that noop names the provider of the missing value, and that a
// failure of the run fails noop.
func TestNoopNamesWhatLatePropertiesWaitFor(t *testing.T) {
	wrong := errors.New("`count` must be a whole number")
	missing := resource.PrerequisiteError{Needs: []string{"value:app"}, Err: errors.New("no such file")}
	for name, c := range map[string]struct {
		lines []string
		err   error
		want  string
	}{
		"a value that is wrong":           {[]string{"guarded e", "thing other value=1"}, wrong, ""},
		"behind what would change":        {[]string{"thing other value=1", "guarded e require=thing#other"}, wrong, ""},
		"what brings it":                  {[]string{"guarded e", "rel app value=1", "svc other value=1"}, missing, "unknown until rel#app is applied"},
		"a command that may":              {[]string{"svc cmd value=1", "guarded e", "thing other value=1"}, missing, "unknown until svc#cmd is applied"},
		"nothing that may":                {[]string{"guarded e", "thing other value=1"}, missing, ""},
		"outputs of what would change":    {[]string{"guarded e value=1", "thing other value=1"}, wrong, "unknown until guarded#e is applied"},
		"outputs of what is unknown":      {[]string{"thing a value=1", "guarded e value=1 guard=door require=thing#a", "thing other value=1"}, wrong, "unknown until thing#a is applied"},
		"outputs of what never is":        {[]string{"guarded e value=1 noop=true", "thing other value=1"}, wrong, ""},
		"outputs of one that was changed": {[]string{"guarded e", "svc cmd value=1 require=guarded#e"}, wrong, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.opts.Env.Scope.Noop = true
			var all []*resource.Resource
			for _, line := range c.lines {
				all = append(all, w.res(line))
			}
			late := w.res("thing late require=guarded#e")
			late.Taken = []resource.Reference{{Ref: model.Ref{Type: "guarded", Name: "e"}, Property: "outputs"}}
			late.ResolveDeferred = func(context.Context, resource.Outputs) (resource.Spec, []model.Secret, error) { return nil, nil, c.err }
			g, err := plan.Build(append(all, late), nil)
			if err != nil {
				t.Fatal(err)
			}
			w.run(g)
			tx := w.txs["thing#late"]
			if tx.NoopMessage != c.want || tx.Failed != (c.want == "") {
				t.Fatalf("%+v", tx)
			}
			if tx.Failed {
				equal(t, tx.Errors, []string{c.err.Error()})
			}
		})
	}
}

// TestNoopDoesNotTakeTheMachineForWhatItWillBe checks resources whose state depends on earlier changes.
func TestNoopDoesNotTakeTheMachineForWhatItWillBe(t *testing.T) {
	const unknown = "unknown until rel#a is applied"
	for name, c := range map[string]struct {
		lines []string
		want  string // the noop message of the last resource, empty if it is stable
	}{
		"what makes it needless would come":     {[]string{"rel a value=1", "rel b value=1 unless=value:a"}, unknown},
		"by what is unknown itself":             {[]string{"rel a value=1", "rel x value=1 unless=value:a", "rel b value=1 unless=value:x"}, unknown},
		"after it":                              {[]string{"rel b2 value=1", "rel c value=1 unless=value:b"}, "Would have set c"},
		"it comes itself":                       {[]string{"rel a value=1", "rel b value=1 provides=x unless=x"}, "Would have set b"},
		"it would come to what is needless now": {[]string{"rel a value=1", "rel b unless=value:a"}, ""},
		"it is there":                           {[]string{"rel a", "rel b value=1 unless=value:a"}, "Would have set b"},
		"it would go":                           {[]string{"rel a value=1 removes=x", "rel b unless=x"}, unknown},
		"it would go, and is due anyway":        {[]string{"rel a value=1 removes=x", "rel b value=1 unless=x"}, "Would have set b"},
		"what it is compared with would change": {[]string{"rel a value=1", "rel b reads=value:a"}, unknown},
		"or go":                                 {[]string{"rel a value=1 removes=x", "rel b reads=x"}, unknown},
		"and it is due anyway":                  {[]string{"rel a value=1", "rel b value=1 reads=value:a"}, "Would have set b"},
		"would never come":                      {[]string{"rel a value=1 noop=true", "rel b value=1 unless=value:a"}, "Would have set b"},
		"a refresh is due in any case":          {[]string{"rel a value=1", "thing x value=1", "relsvc b unless=value:a subscribe=thing#x"}, "Would have refreshed b"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.types = append(w.types, resource.Of[*spec, *state, provider](relating{newThing(w.m, "relsvc", func(i *resource.Info) { i.Refreshes = true })}, plain{}))
			w.opts.Env.Scope.Noop = true
			run := w.run(w.graph(c.lines...))
			tx := w.txs[w.order[len(w.order)-1]]
			if tx.NoopMessage != c.want || tx.Skipped != (c.want == unknown) || !run.OK() {
				t.Errorf("%+v", tx)
			}
		})
	}
}
