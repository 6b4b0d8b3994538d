package agentcmd

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
)

// TestRefusalsAreNotConnections: what is refused while connected is told once, as that.
func TestRefusalsAreNotConnections(t *testing.T) {
	var out bytes.Buffer
	connected := make(chan struct{}, 1)
	l := &connectionLog{log: print.NewLogger(&out, "text", slog.LevelInfo), connected: connected, denied: map[string]bool{}}
	violation := fmt.Errorf(`%w: Permissions Violation for Publish to "x"`, nats.ErrPermissionViolation)
	for range 3 {
		l.status(kvstore.ConnectionStatus{Connected: true, Err: violation})
	}
	if got := out.String(); strings.Contains(got, "connected to NATS") || strings.Count(got, "permission denied") != 1 || len(connected) != 0 {
		t.Errorf("logged %s", got)
	}
	l.status(kvstore.ConnectionStatus{Connected: true, Server: "nats://x"})
	if got := out.String(); !strings.Contains(got, "connected to NATS") || len(connected) != 1 {
		t.Errorf("logged %s", got)
	}
}
