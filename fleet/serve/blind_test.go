package serve

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestBlind tests that pages, the API and metrics report missing data while NATS is away, and show the last
// known state.
func TestBlind(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	put(t, store, "web01", 1)
	s := serveFleet(t, store, access.Options{})
	s.complete()
	if p := s.overview().Progress; !p.BlindSince.IsZero() || strings.Contains(s.text("/"), "data-blind") || !strings.Contains(s.text("/metrics"), "muster_fleet_blind 0") {
		t.Errorf("at first %+v", p)
	}
	srv.Stop()
	kvtest.Eventually(t, "the server is blind", func() (bool, string) {
		o := s.overview()
		return !o.Progress.BlindSince.IsZero(), fmt.Sprintf("%+v", o.Progress)
	})
	kvtest.Eventually(t, "the page shows the last known state", func() (bool, string) {
		page := s.text("/")
		return strings.Contains(page, "data-blind") && strings.Contains(page, "1 of 1") && strings.Contains(page, "node OK in the last known states, without data since "), page
	})
	if !strings.Contains(s.text("/metrics"), "muster_fleet_blind 1") {
		t.Error(s.text("/metrics"))
	}
	srv.Start(t)
	kvtest.Eventually(t, "the server sees again", func() (bool, string) {
		p := s.overview().Progress
		return p.BlindSince.IsZero() && len(p.Problems) == 0, fmt.Sprintf("%+v", p)
	})
}
