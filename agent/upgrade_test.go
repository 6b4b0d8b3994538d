package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterfleet/muster/model"
)

// TestUpgradeUndoneIsReported once: at a start, at a reload, and when the configuration
// is rejected, which may be why it was undone.
func TestUpgradeUndoneIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.injected()
		path := filepath.Join(n.state, "upgrade")
		undone := func(why string) {
			t.Helper()
			if err := errors.Join(os.MkdirAll(n.state, 0o700), os.WriteFile(path, []byte(why+"\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		reported := func(want ...string) {
			t.Helper()
			var got []string
			for _, r := range n.take() {
				if r.Kind == model.KindNode && r.Outcome == model.Outcome(model.NodeRefused) {
					var s model.NodeState
					n.decode(r, &s)
					got = append(got, s.Message)
				}
			}
			if len(got) != len(want) || len(got) == 1 && got[0] != want[0] {
				t.Errorf("reported are %q, not %q", got, want)
			}
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the file is still there: %v", err)
			}
		}
		undone("at the start")
		n.start()
		reported("at the start")
		undone("while it runs")
		if _, _, err := n.agent.Reload(t.Context(), n.config); err != nil {
			t.Fatal(err)
		}
		n.settle()
		reported("while it runs")
		undone("for the configuration")
		n.agent.RejectConfig(t.Context(), errors.New("interval"))
		n.settle()
		reported("for the configuration")
		n.stop()
		n.start()
		reported()
	})
}
