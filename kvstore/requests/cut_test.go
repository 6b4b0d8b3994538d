package requests_test

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestAConnectionThatIsLostWithTheRequest: the connection breaks before the server confirms the request,
// which is sent again over the next one. The possible loss of answers is reported once.
func TestAConnectionThatIsLostWithTheRequest(t *testing.T) {
	t.Parallel()
	for name, families := range map[string][]string{"one node": {"node.web01"}, "two nodes": {"node.web01", "node.web02"}, "a group": {"group.web"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, _ := kvtest.New(t)
			acknowledging(t, kvtest.Bind(t, srv), "web01", "web")
			acknowledging(t, kvtest.Bind(t, srv), "web02", "web")
			store := kvtest.Bind(t, srv, func(o *nats.Options) error {
				o.Url = srv.CutOnce(t, " muster.ensure.")
				return nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), kvtest.Deadline)
			defer cancel()
			got, losses := map[string]bool{}, 0
			for r, err := range store.Ask(ctx, ensureOf(store, families...)) {
				switch {
				case errors.Is(err, requests.ErrLost):
					losses++
				case err != nil:
					t.Fatal(err)
				case r.Node != "":
					got[r.Node] = true
				}
				if len(got) == 2 || len(families) == 1 && got["web01"] && families[0] == "node.web01" {
					break
				}
			}
			if !got["web01"] || losses != 1 {
				t.Errorf("answers of %v, %d losses", got, losses)
			}
		})
	}
}
