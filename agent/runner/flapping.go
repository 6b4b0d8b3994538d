package runner

import (
	"cmp"
	"fmt"

	"github.com/musterfleet/muster/model"
)

// beginFlapping reports a resource that flaps.
func (m *Manifests) beginFlapping(f model.FlappingState) {
	m.o.Log.Warn("resource flapping", "manifest", f.Manifest, "resource", f.Resource.String(), "writer", cmp.Or(f.Writer, "unknown"))
	m.reportFlapping(f, flappingText(f))
}

// endFlapping reports a resource that no longer flaps.
func (m *Manifests) endFlapping(f model.FlappingState) {
	m.o.Log.Info("resource no longer flapping", "manifest", f.Manifest, "resource", f.Resource.String())
	m.reportFlapping(f, f.Resource.String()+" of "+f.Manifest+" no longer flaps; the agent repairs it immediately again")
}

func (m *Manifests) reportFlapping(f model.FlappingState, message string) {
	m.o.Status.SetFlapping(m.drift.Flapping())
	m.o.Running.After(func() { m.o.Report.Node(f.Manifest, model.NodeFlapping, message) })
}

// showWatches shows the watched, polled and flapping resources.
func (m *Manifests) showWatches() {
	m.o.Status.SetFlapping(m.drift.Flapping())
	m.o.Status.SetWatches(m.drift.Watched())
}

// flappingText returns the message about a resource that flaps.
func flappingText(f model.FlappingState) string {
	cause := "keeps being changed by an unknown program"
	switch {
	case f.Writer != "":
		cause = "keeps being changed, probably by " + f.Writer
	case f.Unit != "":
		cause = "keeps stopping: a program stops it, or it exits (see journalctl --unit=" + f.Unit + ")"
	}

	return fmt.Sprintf("%s of %s %s; the agent delays its repairs more and more until this ends", f.Resource, f.Manifest, cause)
}
