package status_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/status"
)

// ask asks what answers in a state directory for its greeting.
func ask(t *testing.T, dir string) (answer string, err error) {
	t.Helper()
	err = status.Ask(t.Context(), dir, http.MethodGet, "/greeting", nil, &answer)

	return answer, err
}

func greeting(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/greeting" {
		http.Error(w, "no such thing", http.StatusNotFound)
		return
	}
	_, _ = w.Write([]byte(`"hello"`))
}

// TestAsk has a state directory with a path that is too long for a socket, what a killed
// agent left in it, and an agent that ends.
func TestAsk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	if _, err := ask(t, dir); !errors.Is(err, status.ErrNotRunning) {
		t.Errorf("without a directory: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, dir); !errors.Is(err, status.ErrNotRunning) {
		t.Errorf("without a socket: %v", err)
	}
	stale, err := status.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := stale.UnixListener.Close(); err != nil { // as a kill does
		t.Fatal(err)
	}
	if _, err := ask(t, dir); !errors.Is(err, status.ErrNotRunning) {
		t.Errorf("with the socket of a killed agent: %v", err)
	}
	l, err := status.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "agent.sock")); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket is %v, %v", info, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(ctx, http.HandlerFunc(greeting), slog.New(slog.DiscardHandler)) }()
	if answer, err := ask(t, dir); err != nil || answer != "hello" {
		t.Errorf("got %q, %v", answer, err)
	}
	if err := status.Ask(t.Context(), dir, http.MethodGet, "/other", nil, nil); err == nil || err.Error() != "the agent answers: no such thing" {
		t.Errorf("an error of the agent: %v", err)
	}
	stop()
	if err := errors.Join(<-ended, l.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "agent.sock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

// TestListenLeavesOthersAlone: a file in the place of the socket stays.
func TestListenLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "agent.sock")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := status.Listen(dir); err == nil || !strings.Contains(err.Error(), "agent.sock is no socket: move it away") {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("it holds %q, %v", text, err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := status.Listen(dir); err == nil {
		t.Error("it listens where everybody may write")
	}
}

// TestSocketOfOthers: what answers where everybody may write is not asked.
func TestSocketOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "agent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, dir); err == nil || errors.Is(err, status.ErrNotRunning) {
		t.Errorf("got %v", err)
	}
}

// TestAgentThatDoesNotAnswer is not waited for beyond the end of a context.
func TestAgentThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := status.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := status.Ask(ctx, dir, http.MethodGet, "/greeting", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody answers: %v", err)
	}
}
