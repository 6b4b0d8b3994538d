package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// including is a thing that includes a manifest and depends only on it.
type including struct{ thing }

func (including) Include(s *spec) resource.Inclusion { return resource.Inclusion{Source: s.Name} }

func (including) Status(_ context.Context, env resource.Env, _ provider, s *spec) (*state, error) {
	c := env.Children
	return &state{CommonState: model.CommonState{Ensure: "present"}, Value: fmt.Sprintf("%d of %d", c.Changed, c.Total), guard: c.Failed+c.Unmet > 0}, nil
}

func (including) Plan(s *spec, st *state, _ bool) (plan resource.Plan, err error) {
	if !strings.HasPrefix(st.Value, "0 ") {
		plan.Add(model.Change{Action: "include", Message: "Would have changed " + st.Value})
	}
	if st.guard {
		err = errors.New("a child failed")
	}
	return plan, err
}

func (including) Apply(context.Context, resource.Env, provider, *spec, resource.Plan) (resource.Outcome, error) {
	return resource.Outcome{}, nil
}

func (including) Verify(*spec, resource.Outcome, *state) error { return nil }

// tree is a manifest: its resources, each a line or a child manifest.
type tree struct {
	name  string
	depth int
	late  bool
	lines []any
	scope resource.Scope
}

// resources returns the resources of a manifest, children before the including resource. late leaves marked
// manifests to the run.
func (w *world) resources(m *tree, late bool) (all, own []*resource.Resource) {
	for i, line := range m.lines {
		child, includes := line.(*tree)
		text := fmt.Sprint(line)
		if includes {
			text = "incl " + child.name
		}
		res := w.res(text)
		res.Pos = model.Position{File: m.name, Line: i + 1, Column: 1}
		res.Scope = m.scope
		res.Scope.Depth = m.depth
		if includes {
			inner, children := w.resources(child, late)
			if late && child.late {
				res.Expand = func(context.Context, resource.Spec) (resource.Expansion, error) {
					return resource.Expansion{Resources: inner, Children: children}, nil
				}
			} else {
				res.Children = children
				all = append(all, inner...)
			}
		}
		all, own = append(all, res), append(own, res)
	}

	return all, own
}

// grow builds a random manifest with some failing resources and some references to earlier
// resources.
func grow(r *rand.Rand, name string, depth int, known *[]string) *tree {
	m := &tree{name: name, depth: depth, late: r.IntN(2) == 0, scope: resource.Scope{Noop: depth > 0 && r.IntN(8) == 0}}
	for i := range 1 + r.IntN(4) {
		ref := fmt.Sprintf("%s.%d", name, i)
		if depth < 3 && r.IntN(3) == 0 {
			m.lines = append(m.lines, grow(r, ref, depth+1, known))
			*known = append(*known, "incl#"+ref)
			continue
		}
		typ := []string{"thing", "svc"}[r.IntN(2)]
		line := typ + " " + ref + " value=1"
		if r.IntN(8) == 0 {
			line += " fail_at=apply"
		}
		if len(*known) > 0 && r.IntN(2) == 0 {
			line += fmt.Sprintf(" %s=%s", []string{"require", "subscribe"}[r.IntN(2)], (*known)[r.IntN(len(*known))])
		}
		m.lines = append(m.lines, line)
		*known = append(*known, typ+"#"+ref)
	}

	return m
}

// TestLateIsAsEarly builds random manifests. Reading child manifests during the run has the same
// result as reading them before. Each resource runs once, before its parent and after everything
// that the parent waits for.
func TestLateIsAsEarly(t *testing.T) {
	for seed := range uint64(200) {
		outcomes := map[bool][]string{}
		for _, late := range []bool{false, true} {
			w := newWorld(t)
			w.types = append(w.types, resource.Of[*spec, *state, provider](including{newThing(w.m, "incl", nil)}, plain{}))
			var known []string
			m := grow(rand.New(rand.NewPCG(seed, 0)), "m", 0, &known)
			all, _ := w.resources(m, late)
			g, err := plan.Build(all, nil)
			if err != nil {
				t.Fatalf("seed %d, late %v: %v", seed, late, err)
			}
			run := w.run(g)
			if run.Counts.Total != run.Counts.Unique || len(w.order) != run.Counts.Total {
				t.Fatalf("seed %d, late %v: %+v, told of %d", seed, late, run.Counts, len(w.order))
			}
			for i, ref := range w.order {
				tx := w.txs[ref]
				outcomes[late] = append(outcomes[late], fmt.Sprintf("%s %s %v", ref, tx.Outcome(), tx.UnmetRequirements))
				if outer := tx.Within; outer != (model.Ref{}) && slices.Index(w.order, outer.String()) < i {
					t.Fatalf("seed %d, late %v: %s comes after %s, which includes it", seed, late, ref, outer)
				}
			}
			slices.Sort(outcomes[late])
		}
		// If the parent does not run, the manifest is not read and its resources are not reported.
		for _, line := range outcomes[true] {
			if !slices.Contains(outcomes[false], line) {
				t.Fatalf("seed %d: %s only when it is read late\nearly\n  %s\nlate\n  %s", seed, line, strings.Join(outcomes[false], "\n  "), strings.Join(outcomes[true], "\n  "))
			}
		}
	}
}

// childOf puts a resource into a child manifest.
func childOf(res *resource.Resource, scope resource.Scope) *resource.Resource {
	res.Scope, res.Scope.Depth = scope, 1
	return res
}

// TestBatchLeavesOutChildren checks that a batch contains only resources that may change.
func TestBatchLeavesOutChildren(t *testing.T) {
	for name, scope := range map[string]resource.Scope{"health checks": {HealthCheckOnly: true}, "noop": {Noop: true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.types = append(w.types, resource.Of[*spec, *state, provider](including{newThing(w.m, "incl", nil)}, plain{}))
			child, incl := childOf(w.res("many child value=1"), scope), w.res("incl c.yaml")
			child.Pos.File, incl.Children = "c.yaml", []*resource.Resource{child}
			g, err := plan.Build([]*resource.Resource{w.res("many a value=1"), child, incl, w.res("many b value=1")}, nil)
			if err != nil {
				t.Fatal(err)
			}
			w.run(g)
			if w.m.get("child") != "" || w.m.get("a") != "1" || w.m.get("b") != "1" {
				t.Errorf("%v", w.m.values)
			}
		})
	}
}

// TestBatchLeavesOutWhatEnded checks that a manifest that has ended changes nothing, also in a
// batch with other manifests.
func TestBatchLeavesOutWhatEnded(t *testing.T) {
	w := newWorld(t)
	w.types = append(w.types, resource.Of[*spec, *state, provider](including{newThing(w.m, "incl", nil)}, plain{}))
	broken, inner := childOf(w.res("thing broken value=1 fail_at=apply"), resource.Scope{FailOnError: true}), childOf(w.res("incl inner.yaml"), resource.Scope{FailOnError: true})
	child := childOf(w.res("many child value=1"), resource.Scope{})
	child.Scope.Depth, inner.Children = 2, []*resource.Resource{child}
	outer := w.res("incl outer.yaml")
	outer.Children = []*resource.Resource{broken, inner}
	for _, r := range []*resource.Resource{broken, inner, child} {
		r.Pos.File = "c.yaml"
	}
	many := w.res("many a value=1")
	many.Meta().Require = nil
	// a is observed before broken and runs after it.
	many.Meta().Subscribe = []model.Ref{broken.Ref()}
	g, err := plan.Build([]*resource.Resource{broken, many, child, inner, outer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.run(g)
	w.outcomes("thing#broken failed", "many#a changed", "many#child notrun", "incl#inner.yaml notrun", "incl#outer.yaml failed")
}

// Drift of a child counts once, not again for its parent.
func TestDriftOfAChildIsCountedOnce(t *testing.T) {
	w := newWorld(t)
	w.types = append(w.types, resource.Of[*spec, *state, provider](including{newThing(w.m, "incl", nil)}, plain{}))
	child, incl := childOf(w.res("thing child value=1"), resource.Scope{}), w.res("incl c.yaml")
	child.Pos.File, incl.Children = "c.yaml", []*resource.Resource{child}
	g, err := plan.Build([]*resource.Resource{child, incl}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.opts.Cause = model.CauseSchedule
	if run := w.run(g); run.Drift.Detected != 1 || run.Drift.Repaired != 1 || run.Counts.Changed != 2 {
		t.Errorf("%+v %+v", run.Drift, run.Counts)
	}
}

// TestNoopAfterAManifestWasRead checks positions in the new graph, which needs may have moved.
func TestNoopAfterAManifestWasRead(t *testing.T) {
	w := newWorld(t)
	w.types = append(w.types, resource.Of[*spec, *state, provider](including{newThing(w.m, "incl", nil)}, plain{}))
	w.opts.Env.Scope.Noop = true
	child, incl := childOf(w.res("rel x value=1"), resource.Scope{}), w.res("incl late")
	child.Pos.File = "late"
	incl.Expand = func(context.Context, resource.Spec) (resource.Expansion, error) {
		return resource.Expansion{Resources: []*resource.Resource{child}, Children: []*resource.Resource{child}}, nil
	}
	g, err := plan.Build([]*resource.Resource{
		w.res("rel d value=1 needs=value:x"), w.res("rel b value=1"), incl, w.res("guarded g value=1 guard=door require=rel#d,rel#b"),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.run(g)
	w.outcomes("rel#d noop", "rel#b noop", "rel#x noop", "incl#late noop", "guarded#g skipped")
	if got := w.txs["guarded#g"].NoopMessage; got != "unknown until rel#d is applied" {
		t.Error(got)
	}
}
