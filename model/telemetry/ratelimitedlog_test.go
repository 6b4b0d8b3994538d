package telemetry

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestAFloodIsTenLines(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	now := time.Unix(1000, 0)
	l := &RateLimitedLog{now: func() time.Time { return now }}
	for range 1000 {
		l.Log(t.Context(), log, slog.LevelWarn, "rejected", "from", "evil")
	}
	l.Log(t.Context(), log, slog.LevelError, "something else")
	if lines := strings.Count(text.String(), "msg=rejected"); lines != 10 || strings.Count(text.String(), "something else") != 1 {
		t.Errorf("%d lines of\n%s", lines, text.String())
	}
	now = now.Add(9 * time.Minute)
	l.Log(t.Context(), log, slog.LevelWarn, "rejected")
	now = now.Add(time.Minute)
	text.Reset()
	for range 2 {
		l.Log(t.Context(), log, slog.LevelWarn, "rejected", "from", "evil")
	}
	if got := text.String(); strings.Count(got, "msg=rejected") != 2 || strings.Count(got, "left_out=991") != 1 || !strings.HasSuffix(strings.SplitN(got, "\n", 2)[0], "left_out=991") {
		t.Errorf("ten minutes later:\n%s", got)
	}
}

func TestTheZeroValueLogs(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	var l RateLimitedLog
	l.Log(t.Context(), slog.New(slog.NewTextHandler(&text, nil)), slog.LevelInfo, "event")
	if !strings.Contains(text.String(), "msg=event") {
		t.Error(text.String())
	}
}
