package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestResumeOfALostPause ends a pause that nodes keep although the bucket lost it, as after a restored backup.
func TestResumeOfALostPause(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	const key = "group.web.pause"
	state := model.NodeState{Node: "web01", Groups: []string{"all", "web"}, Paused: &model.Paused{From: key, Reason: "disk"}}
	if err := store.PutState(t.Context(), state, time.Hour); err != nil {
		t.Fatal(err)
	}
	resume := func(target ...string) string {
		_, text := start(t, filepath.Join(t.TempDir(), "state"), append([]string{"--server", srv.URL(), "fleet", "resume", "--timeout", "0"}, target...)...).wait()
		return text
	}
	if text := resume("--group", "db"); !strings.Contains(text, "db") || strings.Contains(text, key) {
		t.Errorf("another group: %s", text)
	}
	if text := resume("--group", "web"); !strings.Contains(text, key+" removed, revision ") {
		t.Errorf("its group: %s", text)
	}
}
