package agentcmd

import (
	"testing"

	"github.com/musterfleet/muster/model"
)

// TestAbout names the resources of a repair, and not all of many.
func TestAbout(t *testing.T) {
	part := func(names ...string) (out []model.Ref) {
		for _, name := range names {
			out = append(out, model.Ref{Type: "service", Name: name})
		}
		return out
	}
	for want, refs := range map[string][]model.Ref{
		"node.web01.svc":                                          nil,
		"node.web01.svc service#a":                                part("a"),
		"node.web01.svc service#a service#b service#c":            part("a", "b", "c"),
		"node.web01.svc service#a service#b service#c and 2 more": part("a", "b", "c", "d", "e"),
	} {
		if got := about(model.RunningRun{Manifest: "node.web01.svc", Part: refs}); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
