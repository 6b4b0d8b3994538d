package serve

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestOverviewNamesLostManifests tests that the overview names a manifest that nodes run although the bucket lost its key,
// until the key is removed, and no manifest that an operator removed.
func TestOverviewNamesLostManifests(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	const lost, removed = "group.web.motd", "group.web.removed"
	state := model.NodeState{Node: "web01", Groups: []string{"web"}, Manifests: map[string]model.ManifestState{lost: {Revision: 1, Outcome: model.OutcomeStable}, removed: {Revision: 1, Outcome: model.OutcomeStable}}}
	if _, err := store.Delete(t.Context(), removed, nil); err != nil {
		t.Fatal(err)
	}
	if err := store.PutState(t.Context(), state, time.Hour); err != nil {
		t.Fatal(err)
	}
	s := serveFleet(t, kvtest.Bind(t, srv), access.Options{})
	s.complete()
	kvtest.Eventually(t, "the overview names the manifest", func() (bool, string) {
		all := s.overview().Lost
		return len(all) == 1 && all[0].Key == lost && all[0].Nodes == 1, fmt.Sprintf("%+v", all)
	})
	page := s.text("/")
	for _, want := range []string{"1 manifest has lost its key", "group.web.motd still runs on 1 node; push it again or run muster fleet rm KEY", `href="/manifests/group.web.motd"`} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing in the page", want)
		}
	}
	if _, err := store.Delete(t.Context(), lost, nil); err != nil {
		t.Fatal(err)
	}
	kvtest.Eventually(t, "the overview names no manifest", func() (bool, string) {
		all := s.overview().Lost
		return len(all) == 0, fmt.Sprintf("%+v", all)
	})
}
