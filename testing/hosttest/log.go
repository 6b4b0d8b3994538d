package hosttest

import (
	"bytes"
	"log/slog"
	"testing"
)

// Log returns a log that writes to the test's output.
func Log(t testing.TB) *slog.Logger {
	t.Helper()

	return slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(string(bytes.TrimRight(b, "\n")))

	return len(b), nil
}
