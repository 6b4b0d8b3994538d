package agent

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/musterfleet/muster/agent/flaps"
	"github.com/musterfleet/muster/agent/schedule"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// standing are the resources that did not reach their state when they were tried
// last, by manifest: a run of a part takes the rest as it stands.
type standing map[string]map[model.Ref]bool

// note takes over the result of a resource.
func (s standing) note(key string, t *model.Transaction) {
	switch {
	case t.NotRun:
	case t.OK():
		delete(s[key], t.Ref())
	case s[key] == nil:
		s[key] = map[model.Ref]bool{t.Ref(): true}
	default:
		s[key][t.Ref()] = true
	}
}

// forget forgets a manifest.
func (s standing) forget(key string) { delete(s, key) }

// failed returns what says of a resource of a manifest whether it failed.
func (s standing) failed(key string) func(model.Ref) bool {
	return func(ref model.Ref) bool { return s[key][ref] }
}

// follow watches the resources of a manifest; late are those that its run found.
func (m *manifests) follow(key string, late []*resource.Resource) {
	all := m.set.Active(key).Resolution.Resources
	m.drift.Follow(key, m.runner.facts.values(), append(all[:len(all):len(all)], late...), m.set.Active(key).Resolution.Flapping)
	m.followed()
}

// unfollow ends the watches of a manifest.
func (m *manifests) unfollow(key string) {
	m.drift.Remove(key)
	m.followed()
}

// followed updates what depends on what is watched.
func (m *manifests) followed() {
	m.flaps.Retain(m.drift.Flapping())
	m.status.SetFlapping(m.flaps.States())
	m.status.SetWatches(m.drift.Watched())
}

// noteRepair takes over what came of a resource that may have drifted.
func (m *manifests) noteRepair(ctx context.Context, key string, w schedule.Wake, t *model.Transaction) {
	if w.Cause != model.CauseDrift || t.NotRun {
		return
	}
	now := time.Now()
	if acted := t.Failed || t.Changed && !t.Noop; !acted {
		if slices.Contains(w.Part, t.Ref()) {
			m.drift.Looked(key, t.Ref(), now)
		}
		return
	}
	if f, began := m.drift.Repaired(key, t.Ref(), now); began {
		m.flaps.Begin(ctx, f)
	}
}

// noteCalm ends what flapped and was left alone, and tells of what flaps.
func (m *manifests) noteCalm(now time.Time) {
	for _, f := range m.drift.Calm(now) {
		m.flaps.End(f.Key, f.Ref)
	}
	m.flaps.Look(now)
}

// flapping tells that a resource flaps from now on.
func (m *manifests) flapping(f model.FlappingState) {
	m.log.Warn("resource flapping", "manifest", f.Manifest, "resource", f.Resource.String(), "writer", cmp.Or(f.Writer, "unknown"))
	m.status.SetFlapping(m.flaps.States())
	m.report.Node(f.Manifest, model.NodeFlapping, flaps.Text(f))
}

// settled tells that a resource flaps no more.
func (m *manifests) settled(f model.FlappingState) {
	m.log.Info("resource no longer flapping", "manifest", f.Manifest, "resource", f.Resource.String())
	m.status.SetFlapping(m.flaps.States())
	m.report.Node(f.Manifest, model.NodeSettled, f.Resource.String()+" of "+f.Manifest+" was left alone and is repaired at once again")
}

// noteDrift asks for the repair of what may have drifted.
func (m *manifests) noteDrift(now time.Time) {
	for _, d := range m.drift.Take(now) {
		m.schedule.AskPart(d.Key, model.CauseDrift, d.Seen, d.Refs)
	}
	m.status.SetWatches(m.drift.Watched())
}

// graph returns what runs: the part that was asked for, or the whole manifest where
// there is no such part.
func (m *manifests) graph(key string, w *schedule.Wake) *graph.Graph {
	g := m.set.Active(key).Resolution.Graph
	if w.Part != nil {
		if part, ok := g.Part(w.Part); ok {
			return part
		}
		w.Part = nil
	}

	return g
}

// left notes what a run has left of a resource.
func (m *manifests) left(key string, ref model.Ref, state resource.State) {
	if s, ok := state.(resource.Marker); ok {
		path, mark := s.Mark()
		m.drift.Left(key, ref, path, mark)
	}
}

// isLook reports whether a run only looked, because something had happened, and found
// everything in its state.
func isLook(s *model.Run) bool {
	return s.Cause == model.CauseDrift && s.Outcome() == model.OutcomeStable && len(s.Errors) == 0
}

// concludePart reports the run of a part. Once nothing fails any more of a manifest that
// did, a run of all of it brings its numbers up to date.
func (m *manifests) concludePart(ctx context.Context, key string, s *model.Run) {
	if s.Cause != model.CauseDrift || len(s.Errors) > 0 || m.report.News(s.RunID) {
		m.report.Run(s)
		m.runner.logRun(ctx, s)
		if m.ran != nil {
			m.ran(key, s)
		}
	}
	if m.status.SetPart(key, s) && len(m.standing[key]) == 0 {
		m.schedule.Ask(key, model.CauseSchedule, time.Now())
	}
}
