package runner

import (
	"testing"

	"github.com/musterfleet/muster/model"
)

// TestFlappingText: the text names a writer only if one is known.
func TestFlappingText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f          model.FlappingState
		text, said string
	}{
		{model.FlappingState{}, "keeps being changed by an unknown program", "written by an unknown program"},
		{model.FlappingState{Writer: "vi (12)"}, "keeps being changed, probably by vi (12)", "probably written by vi (12)"},
		{model.FlappingState{Unit: "app.service"}, "keeps stopping: a program stops it, or it exits (see journalctl --unit=app.service)", "stopped by a program, or exits: see journalctl --unit=app.service"},
	} {
		c.f.Manifest, c.f.Resource = "node.web01.site", model.Ref{Type: "service", Name: "app"}
		if got, want := flappingText(c.f), "service#app of node.web01.site "+c.text+"; the agent delays its repairs more and more until this ends"; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		if got := c.f.By(); got != c.said {
			t.Errorf("said %q, want %q", got, c.said)
		}
	}
}
