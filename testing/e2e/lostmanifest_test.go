package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestStatusNamesALostManifest tests that fleet status names a manifest that nodes run although the bucket lost its key,
// and no manifest that an operator removed.
func TestStatusNamesALostManifest(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	const lost, removed, assigned = "group.web.motd", "group.web.removed", "group.web.assigned"
	for _, key := range []string{removed, assigned} {
		if _, err := store.Put(t.Context(), key, []byte("resources: []")); err != nil {
			t.Fatal(err)
		}
	}
	put := func(node string, change func(*model.NodeState)) {
		state := model.NodeState{Node: node, Groups: []string{"web"}, Manifests: map[string]model.ManifestState{}}
		for _, key := range []string{lost, removed, assigned} {
			state.Manifests[key] = model.ManifestState{Revision: 1, Outcome: model.OutcomeStable}
		}
		change(&state)
		if err := store.PutState(t.Context(), state, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	put("web01", func(*model.NodeState) {})
	put("web02", func(s *model.NodeState) { s.Paused = &model.Paused{From: "group.web.pause"} })
	put("web03", func(s *model.NodeState) { s.Event = model.NodeStopped })
	run := func(args ...string) string {
		t.Helper()
		code, text := start(t, filepath.Join(t.TempDir(), "state"), append([]string{"--server", srv.URL(), "fleet"}, args...)...).wait()
		if code != 0 {
			t.Fatalf("%q ends with %d: %s", args, code, text)
		}
		return text
	}
	run("rm", removed)
	text := run("status")
	if want := "lost       1 manifest has lost its key; push it again or run muster fleet rm KEY\n           group.web.motd runs on 2 nodes (web01, web02)\n"; !strings.Contains(text, want) || strings.Contains(text, removed) {
		t.Errorf("the lines are missing, or there are others:\n%s", text)
	}
	var status struct {
		Lost []struct {
			Key   string
			Nodes int
		}
	}
	if err := json.Unmarshal([]byte(run("status", "--json")), &status); err != nil || len(status.Lost) != 1 || status.Lost[0].Key != lost || status.Lost[0].Nodes != 2 {
		t.Errorf("%+v, %v", status, err)
	}

	run("rm", lost)
	if text := run("status"); strings.Contains(text, "lost") {
		t.Errorf("after fleet rm:\n%s", text)
	}
}
