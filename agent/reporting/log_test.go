package reporting

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

// TestDiskThatKeepsNothingIsLoggedOnce has a disk that takes reports and cannot
// make them durable.
func TestDiskThatKeepsNothingIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	b, err := OpenOutbox(OutboxOptions{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Append(model.Report{Kind: model.KindRun, Outcome: model.OutcomeFailed}); err != nil {
		t.Fatal(err)
	}
	if err := b.store.tails[other].file.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if b.Sync() == nil {
			t.Error("it is synced")
		}
	}
	if count := strings.Count(log.String(), "cannot sync"); count != 1 {
		t.Errorf("it is logged %d times:\n%s", count, log.String())
	}
	if reports := b.Next(1); len(reports) > 0 {
		t.Error("a report that is not durable is published")
	}
	_ = b.store.close()
}
