package fleetcmd_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/cmd/muster/fleetcmd"
	"github.com/musterfleet/muster/kvstore/requests"
)

// TestALossIsSaidOnce checks that a loss is logged once, with its consequence.
func TestALossIsSaidOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	fleetcmd.WarnLost(slog.New(slog.NewTextHandler(&out, nil)), "group.web", "nodes are asked again", fmt.Errorf("%w: %w", requests.ErrLost, nats.ErrDisconnected))
	const want = `msg="answers may be lost: nodes are asked again" target=group.web error="nats: server is disconnected"`
	if got := out.String(); !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
}
