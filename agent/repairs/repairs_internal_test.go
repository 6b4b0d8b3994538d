package repairs

import (
	"testing"

	"github.com/musterfleet/muster/model"
)

// TestFlappingText blames nobody who was not seen.
func TestFlappingText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f          model.FlappingState
		text, said string
	}{
		{model.FlappingState{}, "is changed again and again, who does it is not known", "written by somebody unknown"},
		{model.FlappingState{Writer: "vi (12)"}, "is changed again and again, probably by vi (12)", "probably written by vi (12)"},
		{model.FlappingState{Unit: "app.service"}, "stops again and again: somebody stops it, or it ends by itself (journalctl --unit=app.service tells)", "stopped by somebody, or ending by itself: see journalctl --unit=app.service"},
	} {
		c.f.Manifest, c.f.Resource = "node.web01.site", model.Ref{Type: "service", Name: "app"}
		if got, want := flappingText(c.f), "service#app of node.web01.site "+c.text+"; its repairs are held back more and more until that ends"; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		if got := c.f.By(); got != c.said {
			t.Errorf("said %q, want %q", got, c.said)
		}
	}
}
