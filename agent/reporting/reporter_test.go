package reporting

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

// TestDiskThatTakesNothingIsLoggedOnce, not for every run.
func TestDiskThatTakesNothingIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	o, err := OpenOutbox(OutboxOptions{Dir: t.TempDir(), Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	r := NewReporter(ReporterOptions{State: func() model.NodeState { return model.NodeState{} }, MaxDocument: func() int { return 56 << 10 }, Log: logger})
	r.Outbox = o
	r.Node("", model.NodeStarted, "")
	_ = r.Outbox.Sync()
	if err := o.Close(); err != nil { // from now on every write fails
		t.Fatal(err)
	}
	for range 3 {
		r.Node("", model.NodeStarted, "")
		_ = r.Outbox.Sync()
	}
	if count := strings.Count(log.String(), "level=ERROR"); count != 1 {
		t.Errorf("%d errors are logged, want one:\n%s", count, log.String())
	}
}

// TestARepairDoesNotWaitForItsReport to be synced; another run does, for its own and all
// before it.
func TestARepairDoesNotWaitForItsReport(t *testing.T) {
	o, err := OpenOutbox(OutboxOptions{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	r := NewReporter(ReporterOptions{MaxDocument: func() int { return 56 << 10 }, Log: slog.New(slog.DiscardHandler)})
	r.Outbox = o
	r.Run(&model.Run{RunID: "a", Cause: model.CauseDrift})
	if got := o.Next(10); len(got) != 0 {
		t.Errorf("a repair has synced %d reports", len(got))
	}
	r.Run(&model.Run{RunID: "b", Cause: model.CauseSchedule})
	if got := o.Next(10); len(got) != 2 {
		t.Errorf("%d reports are synced, want both", len(got))
	}
}
