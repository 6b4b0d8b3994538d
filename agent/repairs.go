package agent

import (
	"context"
	"time"

	"github.com/musterfleet/muster/agent/runs"
	"github.com/musterfleet/muster/agent/schedule"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// follow follows the resources of a manifest; late are those that its run found.
func (m *manifests) follow(key string, late []*resource.Resource) {
	r := m.set.Active(key).Resolution
	all := append(r.Resources[:len(r.Resources):len(r.Resources)], late...)
	m.repairs.Follow(key, m.facts().Values, all, r.Flapping)
}

// noteDrift asks for the repair of what may have drifted.
func (m *manifests) noteDrift(now time.Time) {
	for _, d := range m.repairs.Take(now) {
		m.schedule.AskPart(d.Key, model.CauseDrift, d.Seen, d.Refs)
	}
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
		runs.LogRun(ctx, m.log, s)
		if m.ran != nil {
			m.ran(key, s)
		}
	}
	m.status.SetNoop(key, m.repairs.Differing(key))
	if m.status.SetPart(key, s) && !m.repairs.Fails(key) {
		m.schedule.Ask(key, model.CauseSchedule, time.Now())
	}
}
