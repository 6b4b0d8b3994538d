package hosttest

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
)

// LogText is the text of a log, which may be read while several goroutines write it.
type LogText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds a part.
func (l *LogText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.Write(b)
}

// String returns the log as written until now.
func (l *LogText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.String()
}

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
