package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/musterfleet/muster/agent/outbox"
	"github.com/musterfleet/muster/model"
)

// TestDiskThatTakesNothingIsLoggedOnce, not for every run.
func TestDiskThatTakesNothingIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	o, err := outbox.Open(outbox.Options{Dir: t.TempDir(), Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	r := &reporter{outbox: o, log: logger, state: func() model.NodeState { return model.NodeState{} }, maxDocument: func() int { return 56 << 10 }}
	r.node("", model.NodeStarted, "")
	r.sync()
	if err := o.Close(); err != nil { // from now on every write fails
		t.Fatal(err)
	}
	for range 3 {
		r.node("", model.NodeStarted, "")
		r.sync()
	}
	if count := strings.Count(log.String(), "level=ERROR"); count != 1 {
		t.Errorf("%d errors are logged, want one:\n%s", count, log.String())
	}
}
