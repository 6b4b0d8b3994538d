package plan_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// spec and state belong to a type for these tests.
type spec struct {
	model.Common
	want      string
	fails     error
	relations resource.Relations
	// plan is the plan besides the changes.
	plan resource.Plan
}

func (s *spec) Meta() *model.Common        { return &s.Common }
func (*spec) Validate() (p model.Problems) { return p }

type state struct {
	model.CommonState
	has string
	// started is the second in which another program started it. The first change is at 1, the second at 2.
	started time.Time
}

func (s *state) IsStartedSince(at time.Time) bool { return s.started.After(at) }

func (s *state) State() *model.CommonState { return &s.CommonState }

func typeOf(name string) *resource.Type {
	t := &resource.Type{Info: resource.Info{Name: name, Refreshes: name != "plain", Writes: resource.Paths}}
	if name == "wide" {
		t.Writes |= resource.Accounts
	}
	t.Plan = func(s resource.Spec, st resource.State, refresh bool) (p resource.Plan, err error) {
		sp := s.(*spec)
		p = sp.plan
		if sp.want == "panic" {
			panic("boom")
		}
		switch has := st.(*state).has; {
		case has == "refused":
		case refresh && t.Refreshes:
			p.Add(model.Change{Action: "refresh"})
		case has != sp.want:
			p.Add(model.Change{Action: "set"})
		}

		return p, sp.fails
	}
	t.Relations = func(s resource.Spec) resource.Relations { return s.(*spec).relations }
	if name == "guarded" {
		t.HasGuards = func(s resource.Spec, st resource.State, refresh bool) bool {
			return refresh || st.(*state).has != s.(*spec).want
		}
		t.EvalGuards = func(context.Context, resource.Env, resource.Provider, resource.Spec, resource.State) (resource.State, error) {
			return nil, errors.New("plan must not ask guards")
		}
	}
	if name == "apply" {
		t.Include = func(resource.Spec) resource.Inclusion { return resource.Inclusion{} }
	}

	return t
}

// row is the state of a run when it decides on the last resource.
type row struct {
	// lines declare resources: "type name key=value …".
	lines []string
	// after lists the results of the earlier resources: changed, failed, touched, unmet, stable, or
	// in noop planned, unknown:NAME.
	after []string
	// has is the observed state. Empty means not observed. "refused" means that a guard forbids the
	// change.
	has    string
	guards string // requested, failed
	err    error
	noop   bool
	// started is the second in which others started it. The first change is made at 1, the second
	// at 2.
	started int64
	up      func(*plan.Upstream)
	change  func(*resource.Resource)
	want    string
}

func (r row) decide(t *testing.T) plan.Decision {
	t.Helper()
	types := map[string]*resource.Type{}
	var all []*resource.Resource
	for _, line := range r.lines {
		words := strings.Fields(line)
		if types[words[0]] == nil {
			types[words[0]] = typeOf(words[0])
		}
		s := &spec{Common: model.Common{Name: words[1]}, want: "1"}
		for _, word := range words[2:] {
			set(t, s, word)
		}
		all = append(all, &resource.Resource{Type: types[words[0]], Spec: s})
	}
	last := all[len(all)-1]
	if r.change != nil {
		r.change(last)
	}
	g, err := plan.Build(all, func(ref model.Ref) bool { return strings.HasPrefix(ref.Name, "earlier") })
	if err != nil {
		t.Fatal(err)
	}
	up := &plan.Upstream{
		Terms: plan.Terms{Cause: model.CauseCommand, Scope: resource.Scope{Noop: r.noop}}, Graph: g, Results: make([]plan.Result, g.Len()),
		Pending: map[model.Ref]bool{}, Ended: map[model.Ref]string{},
	}
	for i, word := range r.after {
		settle(t, up, g.Node(all[i].Ref()), word)
		if res := &up.Results[g.Node(all[i].Ref()).At]; res.Changed {
			res.ChangedAt = time.Unix(int64(i+1), 0)
		}
	}
	if r.up != nil {
		r.up(up)
	}

	return plan.Decide(g.Node(last.Ref()), r.observation(last), up)
}

func (r row) observation(last *resource.Resource) plan.Observation {
	obs := plan.Observation{Err: r.err, Guarded: r.guards == "asked"}
	if r.guards == "failed" {
		obs.GuardErr = errors.New("no answer")
	}
	if r.has != "" {
		obs.Spec, obs.State, obs.Valid = last.Spec, &state{has: r.has, started: time.Unix(r.started, 0)}, true
	}

	return obs
}

func set(t *testing.T, s *spec, word string) {
	t.Helper()
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "require", "subscribe":
		for _, text := range strings.Split(value, ",") {
			ref, err := model.ParseRef(text)
			if err != nil {
				t.Fatal(err)
			}
			if key == "require" {
				s.Require = append(s.Require, ref)
			} else {
				s.Subscribe = append(s.Subscribe, ref)
			}
		}
	case "noop":
		s.Noop = true
	case "drift":
		s.Drift = model.Drift(value)
	case "want":
		s.want = value
	case "fails":
		s.fails = errors.New(value)
	case "missing":
		s.fails = resource.PrerequisiteError{Needs: []string{value}, Err: errors.New(value + " is missing")}
	case "absent":
		s.plan.Missing = append(s.plan.Missing, value)
	case "takes":
		s.plan.Removes = append(s.plan.Removes, value)
	case "compared":
		s.plan.ComparedWith = append(s.plan.ComparedWith, value)
	case "undue":
		s.plan.UndueFor = value
	case "refused":
		s.plan.Fails = errors.New(value)
	case "unlisted":
		s.plan.Fails = resource.PrerequisiteError{Needs: []string{value}, Err: errors.New(value + " does not list it")}
	case "provides":
		s.relations.Provides = append(s.relations.Provides, resource.Provision{What: value})
	case "along":
		s.relations.Provides = append(s.relations.Provides, resource.Provision{What: value, Implicit: true})
	case "removes":
		s.relations.Removes = append(s.relations.Removes, value)
	case "unless":
		s.relations.SkipIfExists = append(s.relations.SkipIfExists, value)
	case "only-if":
		s.relations.SkipIfAbsent = append(s.relations.SkipIfAbsent, value)
	case "needs":
		s.relations.Needs = append(s.relations.Needs, resource.Need{What: value})
	case "needs-all":
		s.relations.Needs = append(s.relations.Needs, resource.Need{What: value, All: true})
	case "reads":
		s.relations.Needs = append(s.relations.Needs, resource.Need{What: value, ReadsContent: true})
	default:
		t.Fatalf("what is %s?", word)
	}
}

func settle(t *testing.T, up *plan.Upstream, n *plan.Node, word string) {
	t.Helper()
	res := &up.Results[n.At]
	res.Started = true
	switch word, until, _ := strings.Cut(word, ":"); word {
	case "changed":
		res.Changed, res.Touched = true, true
	case "failed":
		res.Failed = true
	case "touched":
		res.Failed, res.Touched = true, true
	case "unmet":
		res.Unmet = true
	case "planned":
		up.Expect(n, plan.Planned, n)
	case "unknown":
		up.Expect(n, plan.Unsettled, up.Graph.Node(model.Ref{Type: n.Ref.Type, Name: until}))
	case "stable":
	case "not-begun":
		res.Started = false
		return
	default:
		t.Fatalf("what is %s?", word)
	}
	up.End(n)
}

// words returns a decision on one line.
func words(d plan.Decision) string {
	var out string
	switch d.Kind {
	case plan.Stable:
		out = "stable"
	case plan.Change:
		out = "change " + d.Plan.Changes[0].Action
	case plan.Skip:
		out = "skip: " + d.Reason
		if d.NotRun {
			out = "notrun: " + d.Reason
		}
		if len(d.Unmet) > 0 {
			out += fmt.Sprint(" ", d.Unmet)
		}
	case plan.Unknown:
		out = d.Reason
	case plan.Wait:
		out = "wait for " + [...]string{"properties", "state", "guards", "manifest", "creator"}[d.For]
		if d.Creator != nil {
			out += " " + d.Creator.Ref.String()
		}
	case plan.Fail:
		out = "fail: " + d.Err.Error()
	case plan.CheckOnly:
		out = "check only"
	}
	if d.Refresh && d.Kind == plan.Stable {
		out += ", refresh made"
	}
	if d.Kind == plan.Change && d.Until != nil {
		out += ", provided its guards after " + d.Until.Ref.String()
	}
	if d.More != nil {
		out += ", and more after " + d.More.Ref.String()
	}

	return out
}

func pendingB(u *plan.Upstream) { u.Pending[model.Ref{Type: "svc", Name: "b"}] = true }

var rows = map[string]row{
	// Single resources.
	"nothing observed":           {lines: []string{"svc b"}, want: "wait for state"},
	"in its state":               {lines: []string{"svc b"}, has: "1", want: "stable"},
	"not in its state":           {lines: []string{"svc b"}, has: "0", want: "change set"},
	"the same in noop":           {lines: []string{"svc b"}, has: "0", noop: true, want: "change set"},
	"cannot be observed":         {lines: []string{"svc b"}, err: errors.New("denied"), want: "fail: denied"},
	"must not be touched":        {lines: []string{"svc b fails=occupied"}, has: "0", want: "fail: occupied"},
	"the same in noop, too":      {lines: []string{"svc b fails=occupied"}, has: "0", noop: true, want: "fail: occupied"},
	"a type that panics":         {lines: []string{"svc b want=panic"}, has: "0", want: "fail: panic in the resource type: boom"},
	"late properties":            {lines: []string{"svc b"}, change: late, want: "wait for properties"},
	"late properties fail":       {lines: []string{"svc b"}, change: late, err: errors.New("no such key"), want: "fail: no such key"},
	"a manifest to read":         {lines: []string{"apply b"}, change: expand, want: "wait for manifest"},
	"a manifest that is invalid": {lines: []string{"apply b"}, change: expand, err: errors.New("line 3"), want: "fail: line 3"},

	"takes what another wants": {lines: []string{"svc a provides=x", "svc b takes=x"}, after: []string{"stable"}, has: "0", want: "fail: not changed, because it would also remove x, which svc#a provides; remove one of the two resources"},
	"the same, later":          {lines: []string{"svc a provides=y", "svc b takes=y"}, after: []string{"not-begun"}, has: "0", noop: true, want: "fail: not changed, because it would also remove y, which svc#a provides; remove one of the two resources"},
	"takes what it provides":   {lines: []string{"svc b provides=x takes=x"}, has: "0", want: "change set"},
	"takes what nobody wants":  {lines: []string{"svc a provides=y", "svc b takes=x"}, after: []string{"stable"}, has: "0", want: "change set"},
	"undue for another":        {lines: []string{"svc b undue=x", "svc a provides=x", "svc c undue=x"}, after: []string{"stable", "not-begun"}, has: "0", want: "stable"},
	"undue for what is left":   {lines: []string{"svc a provides=y", "svc b undue=x"}, after: []string{"stable"}, has: "0", want: "change set"},
	"expected to fail":         {lines: []string{"svc b refused=held"}, has: "0", want: "change set"},
	"foreseen in noop":         {lines: []string{"svc b refused=held"}, has: "0", noop: true, want: "fail: held"},

	// Gates.
	"excluded":                          {lines: []string{"svc b"}, change: func(r *resource.Resource) { r.Excluded = "control if" }, has: "0", want: "skip: control if"},
	"the run has ended":                 {lines: []string{"svc b"}, has: "0", up: func(u *plan.Upstream) { u.Stopped = "interrupted" }, want: "notrun: interrupted"},
	"requirement met":                   {lines: []string{"svc a", "svc b require=svc#a"}, after: []string{"stable"}, has: "0", want: "change set"},
	"requirement changed":               {lines: []string{"svc a", "svc b require=svc#a"}, after: []string{"changed"}, has: "1", want: "stable"},
	"requirement failed":                {lines: []string{"svc a", "svc b require=svc#a"}, after: []string{"failed"}, has: "0", want: "skip: requirements are not met [svc#a]"},
	"requirement unmet":                 {lines: []string{"svc a", "svc b require=svc#a"}, after: []string{"unmet"}, has: "0", want: "skip: requirements are not met [svc#a]"},
	"one of two failed":                 {lines: []string{"svc a", "svc c", "svc b require=svc#a,svc#c"}, after: []string{"stable", "failed"}, has: "0", want: "skip: requirements are not met [svc#c]"},
	"subscribed failed":                 {lines: []string{"svc a", "svc b subscribe=svc#a"}, after: []string{"failed"}, has: "0", want: "change set"},
	"its directory failed":              {lines: []string{"svc a provides=path:/d", "svc b needs=path:/d"}, after: []string{"failed"}, has: "0", want: "skip: requirements are not met [svc#a]"},
	"its directory is unmet":            {lines: []string{"svc a provides=path:/d", "svc b needs=path:/d"}, after: []string{"unmet"}, has: "0", want: "skip: requirements are not met [svc#a]"},
	"the same in noop, failed":          {lines: []string{"svc a provides=path:/d", "svc b needs=path:/d"}, after: []string{"failed"}, has: "0", noop: true, want: "skip: requirements are not met [svc#a]"},
	"its source failed":                 {lines: []string{"svc a provides=path:/s", "svc b reads=path:/s"}, after: []string{"failed"}, has: "0", want: "skip: requirements are not met [svc#a]"},
	"its directory changed":             {lines: []string{"svc a provides=path:/d", "svc b needs=path:/d"}, after: []string{"changed"}, has: "0", want: "change set"},
	"required, and once":                {lines: []string{"svc a provides=path:/d", "svc b needs=path:/d require=svc#a"}, after: []string{"failed"}, has: "0", want: "skip: requirements are not met [svc#a]"},
	"subscribed, it is not gated":       {lines: []string{"svc a provides=path:/d", "svc b needs=path:/d subscribe=svc#a"}, after: []string{"failed"}, has: "0", want: "change set"},
	"no path failed":                    {lines: []string{"svc a provides=package:x", "svc b needs=package:x"}, after: []string{"failed"}, has: "0", want: "change set"},
	"its entry failed":                  {lines: []string{"svc a provides=emptied:/d", "svc b needs-all=emptied:/d"}, after: []string{"failed"}, has: "0", want: "change set"},
	"checks despite a failed directory": {lines: []string{"svc a provides=path:/d", "svc b needs=path:/d"}, after: []string{"failed"}, up: checksOnly, want: "check only"},
	"drift is ignored":                  {lines: []string{"svc b drift=ignore"}, has: "0", up: scheduled, want: "skip: drift is ignored"},
	"drift is not asked":                {lines: []string{"svc b drift=ignore"}, has: "0", want: "change set"},
	"only health checks":                {lines: []string{"svc b"}, up: checksOnly, want: "check only"},
	"checks despite unmet":              {lines: []string{"svc a", "svc b require=svc#a"}, after: []string{"failed"}, up: checksOnly, want: "check only"},

	// Refreshes.
	"subscribed changed":         {lines: []string{"svc a", "svc b subscribe=svc#a"}, after: []string{"changed"}, has: "1", want: "change refresh"},
	"subscribed stable":          {lines: []string{"svc a", "svc b subscribe=svc#a"}, after: []string{"stable"}, has: "1", want: "stable"},
	"a type without refresh":     {lines: []string{"svc a", "plain b subscribe=svc#a"}, after: []string{"changed"}, has: "1", want: "stable"},
	"a pending refresh":          {lines: []string{"svc a", "svc b subscribe=svc#a"}, after: []string{"stable"}, has: "1", up: pendingB, want: "change refresh"},
	"pending, and it fails":      {lines: []string{"svc a", "svc b subscribe=svc#a"}, after: []string{"failed"}, has: "1", up: pendingB, want: "stable"},
	"pending, partly applied":    {lines: []string{"svc a", "svc c", "svc b subscribe=svc#a,svc#c"}, after: []string{"touched", "stable"}, has: "1", up: pendingB, want: "stable"},
	"a refresh that is asked":    {lines: []string{"svc b"}, has: "1", up: func(u *plan.Upstream) { u.Requested = []model.Ref{{Type: "svc", Name: "b"}} }, want: "change refresh"},
	"started by another":         {lines: []string{"svc a", "svc b subscribe=svc#a"}, after: []string{"changed"}, has: "1", started: 2, up: pendingB, want: "stable, refresh made"},
	"before the last change":     {lines: []string{"svc a", "svc c", "svc b subscribe=svc#a,svc#c"}, after: []string{"changed", "changed"}, has: "1", started: 2, want: "change refresh"},
	"after the last change":      {lines: []string{"svc a", "svc c", "svc b subscribe=svc#a,svc#c"}, after: []string{"changed", "changed"}, has: "1", started: 3, want: "stable, refresh made"},
	"started, and not stable":    {lines: []string{"svc a", "svc b subscribe=svc#a"}, after: []string{"changed"}, has: "0", started: 3, want: "change set"},
	"started, pending before":    {lines: []string{"svc a", "svc b subscribe=svc#a"}, after: []string{"stable"}, has: "1", started: 3, up: pendingB, want: "change refresh"},
	"started, and it is asked":   {lines: []string{"svc a", "svc b subscribe=svc#a"}, after: []string{"changed"}, has: "1", started: 3, up: func(u *plan.Upstream) { u.Requested = []model.Ref{{Type: "svc", Name: "b"}} }, want: "change refresh"},
	"started, elsewhere":         {lines: []string{"svc a", "svc b subscribe=svc#a,svc#earlier"}, after: []string{"changed"}, has: "1", started: 3, up: earlier(model.Transaction{Changed: true}), want: "change refresh"},
	"refused by its guard":       {lines: []string{"svc a", "guarded b subscribe=svc#a"}, after: []string{"changed"}, has: "refused", guards: "asked", want: "stable, refresh made"},
	"of an earlier command":      {lines: []string{"svc b subscribe=svc#earlier"}, has: "1", up: earlier(model.Transaction{Changed: true}), want: "change refresh"},
	"planned by an earlier one":  {lines: []string{"svc b subscribe=svc#earlier"}, has: "1", up: earlier(model.Transaction{Changed: true, Noop: true}), want: "stable"},
	"the same, in noop":          {lines: []string{"svc b subscribe=svc#earlier"}, has: "1", noop: true, up: earlier(model.Transaction{Changed: true, Noop: true}), want: "change refresh"},
	"an earlier one failed":      {lines: []string{"svc b require=svc#earlier"}, has: "0", up: earlier(model.Transaction{Failed: true}), want: "skip: requirements are not met [svc#earlier]"},
	"an earlier one that is met": {lines: []string{"svc b require=svc#earlier"}, has: "0", up: earlier(model.Transaction{}), want: "change set"},

	// Guards.
	"guards are asked":            {lines: []string{"guarded b"}, has: "0", want: "wait for guards"},
	"guards that are not needed":  {lines: []string{"guarded b"}, has: "1", want: "stable"},
	"guards allow it":             {lines: []string{"guarded b"}, has: "0", guards: "asked", want: "change set"},
	"guards forbid it":            {lines: []string{"guarded b"}, has: "refused", guards: "asked", want: "stable"},
	"guards give no answer":       {lines: []string{"guarded b"}, has: "0", guards: "failed", want: "fail: no answer"},
	"guards in noop":              {lines: []string{"guarded b"}, has: "0", noop: true, want: "wait for guards"},
	"allowed before a change":     {lines: []string{"svc a", "guarded b require=svc#a"}, after: []string{"planned"}, has: "0", guards: "asked", noop: true, want: "change set, provided its guards after svc#a"},
	"forbidden before a change":   {lines: []string{"svc a", "guarded b require=svc#a"}, after: []string{"planned"}, has: "refused", guards: "asked", noop: true, want: "unknown until svc#a is applied"},
	"no answer before a change":   {lines: []string{"svc a", "guarded b require=svc#a"}, after: []string{"planned"}, has: "0", guards: "failed", noop: true, want: "unknown until svc#a is applied"},
	"a change further before":     {lines: []string{"svc a", "svc c require=svc#a", "guarded b require=svc#c"}, after: []string{"planned", "stable"}, has: "refused", guards: "asked", noop: true, want: "unknown until svc#a is applied"},
	"forbidden, nothing before":   {lines: []string{"svc a", "guarded b require=svc#a"}, after: []string{"stable"}, has: "refused", guards: "asked", noop: true, want: "stable"},
	"forbidden after a noop-only": {lines: []string{"svc a noop=true", "guarded b require=svc#a"}, after: []string{"planned"}, has: "refused", guards: "asked", want: "stable"},

	// Unknown results in noop.
	"subscribed would change":     {lines: []string{"svc a", "svc b subscribe=svc#a"}, after: []string{"planned"}, has: "1", noop: true, want: "change refresh"},
	"subscribed is unknown":       {lines: []string{"svc a", "svc c", "svc b subscribe=svc#c"}, after: []string{"planned", "unknown:a"}, has: "1", noop: true, want: "unknown until svc#a is applied"},
	"it would change anyway":      {lines: []string{"svc a", "svc c", "svc b subscribe=svc#c"}, after: []string{"planned", "unknown:a"}, has: "0", noop: true, want: "change set"},
	"noop-only affects no others": {lines: []string{"svc a noop=true", "svc b subscribe=svc#a"}, after: []string{"planned"}, has: "1", noop: true, want: "stable"},
	"noop-only affects its kind":  {lines: []string{"svc a noop=true", "svc b subscribe=svc#a noop=true"}, after: []string{"planned"}, has: "1", want: "change refresh"},
	"takes of a change":           {lines: []string{"svc a", "svc b require=svc#a"}, after: []string{"planned"}, noop: true, change: late, want: "unknown until svc#a is applied: `content` is known after apply"},
	"takes of what is stable":     {lines: []string{"svc a", "svc b require=svc#a"}, after: []string{"stable"}, noop: true, change: late, want: "wait for properties"},
	"brought by a change":         {lines: []string{"svc a provides=x", "svc b missing=x"}, after: []string{"planned"}, has: "0", noop: true, want: "change set"},
	"brought, and not planned":    {lines: []string{"svc a provides=x", "svc b want=0 missing=x"}, after: []string{"planned"}, has: "0", noop: true, want: "unknown until svc#a is applied"},
	"brought by the one before":   {lines: []string{"svc a", "svc b missing=x require=svc#a"}, after: []string{"planned"}, has: "0", noop: true, want: "unknown until svc#a is applied"},
	"brought by what it requires": {lines: []string{"svc a", "wide c", "svc b missing=x require=svc#a"}, after: []string{"planned", "planned"}, has: "0", noop: true, want: "unknown until svc#a is applied"},
	"brought by anyone":           {lines: []string{"svc a", "wide c", "svc b missing=x"}, after: []string{"planned", "planned"}, has: "0", noop: true, want: "unknown until wide#c is applied"},
	"removed, and brought":        {lines: []string{"wide a", "svc b want=0 removes=x require=wide#a"}, after: []string{"planned"}, has: "0", noop: true, want: "unknown until wide#a is applied"},
	"removed by subscription":     {lines: []string{"wide a", "svc b want=0 removes=x subscribe=wide#a"}, after: []string{"unknown:a"}, has: "0", noop: true, want: "unknown until wide#a is applied"},
	"removed, and not brought":    {lines: []string{"wide a", "wide c", "svc b want=0 removes=x require=wide#a"}, after: []string{"stable", "planned"}, has: "0", noop: true, want: "stable"},
	"removed in a real run":       {lines: []string{"wide a", "svc b want=0 removes=x require=wide#a"}, after: []string{"changed"}, has: "0", want: "stable"},
	"brought by nobody":           {lines: []string{"svc a", "svc b missing=x"}, after: []string{"planned"}, has: "0", noop: true, want: "fail: x is missing"},
	"missing in a real run":       {lines: []string{"svc a provides=x", "svc b missing=x"}, after: []string{"changed"}, has: "0", want: "fail: x is missing"},
	"listed by a change":          {lines: []string{"svc a provides=/d/x", "svc b unlisted=/d/"}, after: []string{"planned"}, has: "0", noop: true, want: "change set"},
	"listed by nobody":            {lines: []string{"svc a along=x", "svc b unlisted=x"}, after: []string{"not-begun"}, has: "0", noop: true, want: "fail: x does not list it"},
	"listed in a real run":        {lines: []string{"svc a along=x", "svc b unlisted=x"}, after: []string{"changed"}, has: "0", want: "change set"},
	"gone, and brought":           {lines: []string{"svc a provides=x", "svc b want=0 absent=x"}, after: []string{"planned"}, has: "0", noop: true, want: "unknown until svc#a is applied"},
	"gone, and not brought":       {lines: []string{"svc a provides=x", "svc b want=0 absent=x"}, after: []string{"stable"}, has: "0", noop: true, want: "stable"},
	"gone, in a real run":         {lines: []string{"svc a provides=x", "svc b want=0 absent=x"}, after: []string{"changed"}, has: "0", want: "stable"},
	"created on the way":          {lines: []string{"svc a along=x", "svc b missing=x"}, after: []string{"not-begun"}, has: "0", want: "wait for creator svc#a"},
	"created, and it had its go":  {lines: []string{"svc a along=x", "svc b missing=x"}, after: []string{"failed"}, has: "0", want: "fail: x is missing"},
	"what it reads changes":       {lines: []string{"svc a provides=x", "svc b reads=x"}, after: []string{"planned"}, has: "1", noop: true, want: "unknown until svc#a is applied"},
	"what it reads is removed":    {lines: []string{"svc a removes=x", "svc b reads=x"}, after: []string{"planned"}, has: "1", noop: true, want: "unknown until svc#a is applied"},
	"what satisfies it comes":     {lines: []string{"svc a provides=x", "svc b unless=x"}, after: []string{"planned"}, has: "0", noop: true, want: "unknown until svc#a is applied"},
	"compared with a change":      {lines: []string{"svc a provides=x", "svc b compared=x"}, after: []string{"planned"}, has: "1", noop: true, want: "unknown until svc#a is applied"},
	"compared with a removal":     {lines: []string{"svc a removes=x/y", "svc b compared=x/"}, after: []string{"planned"}, has: "1", noop: true, want: "unknown until svc#a is applied"},
	"compared, and it changes":    {lines: []string{"svc a provides=x", "svc b compared=x"}, after: []string{"planned"}, has: "0", noop: true, want: "change set, and more after svc#a"},
	"compared, and refreshed":     {lines: []string{"svc a provides=x/y", "svc b compared=x/ subscribe=svc#a"}, after: []string{"planned"}, has: "1", noop: true, want: "change refresh, and more after svc#a"},
	"compared, nothing changes":   {lines: []string{"svc a provides=x", "svc b compared=x"}, after: []string{"stable"}, has: "1", noop: true, want: "stable"},
	"compared with another":       {lines: []string{"svc a provides=x/y", "svc b compared=x"}, after: []string{"planned"}, has: "1", noop: true, want: "stable"},
	"compared, in a real run":     {lines: []string{"svc a provides=x", "svc b compared=x"}, after: []string{"changed"}, has: "0", want: "change set"},
	"what satisfies it goes":      {lines: []string{"svc a removes=x", "svc b unless=x"}, after: []string{"planned"}, has: "1", noop: true, want: "unknown until svc#a is applied"},
	"what it waits for comes":     {lines: []string{"svc a provides=x", "svc b only-if=x"}, after: []string{"planned"}, has: "1", noop: true, want: "unknown until svc#a is applied"},
	"what it waits for goes":      {lines: []string{"svc a removes=x", "svc b only-if=x"}, after: []string{"planned"}, has: "0", noop: true, want: "unknown until svc#a is applied"},
	"what it waits for stays":     {lines: []string{"svc a removes=x", "svc b only-if=x"}, after: []string{"planned"}, has: "1", noop: true, want: "stable"},
	"what satisfies it stays":     {lines: []string{"svc a provides=x", "svc b unless=x"}, after: []string{"planned"}, has: "1", noop: true, want: "stable"},
	"a manifest that is brought":  {lines: []string{"svc a", "apply b"}, after: []string{"planned"}, noop: true, change: func(r *resource.Resource) { expand(r); r.Brings = model.Ref{Type: "svc", Name: "a"} }, want: "unknown until svc#a is applied"},
}

func late(r *resource.Resource) {
	r.ResolveDeferred = func(context.Context, resource.Outputs) (resource.Spec, []model.Secret, error) { return nil, nil, nil }
	r.Waiting = []string{"content"}
	for _, ref := range r.Meta().Require {
		r.Taken = append(r.Taken, resource.Reference{Ref: ref, Property: "outputs"})
	}
}

func expand(r *resource.Resource) {
	r.Expand = func(context.Context, resource.Spec) (resource.Expansion, error) { return resource.Expansion{}, nil }
}

func scheduled(u *plan.Upstream)  { u.Cause = model.CauseSchedule }
func checksOnly(u *plan.Upstream) { u.Scope.HealthCheckOnly = true }

func earlier(t model.Transaction) func(*plan.Upstream) {
	t.Timestamp = time.Unix(1, 0)

	return func(u *plan.Upstream) { u.Prior = plan.History{{Type: "svc", Name: "earlier"}: {&t}} }
}

// TestDecide checks decisions against the tables of the specification: requirements, refreshes,
// guards and noop.
func TestDecide(t *testing.T) {
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			if got := words(r.decide(t)); got != r.want {
				t.Errorf("it is %q, not %q", got, r.want)
			}
		})
	}
}
