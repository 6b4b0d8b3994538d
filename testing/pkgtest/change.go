package pkgtest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
	"golang.org/x/sys/unix"
)

// Changer is a package manager that changes packages.
type Changer interface {
	ChangeAll(ctx context.Context, env resource.Env, requests []pkg.Request) error
}

// Install installs one package.
func Install(ctx context.Context, env resource.Env, p Changer, name, version string) error {
	return p.ChangeAll(ctx, env, []pkg.Request{{Action: pkg.Install, Name: name, Version: version}})
}

// Never is a log that nothing may be written to.
type Never struct{ T testing.TB }

// Write fails the test.
func (n *Never) Write(b []byte) (int, error) {
	n.T.Errorf("the log says %s", b)

	return len(b), nil
}

// NotBrokenOff installs muster-slow, whose script waits. The timeout expires during the script, which ends
// after the warning is logged.
func NotBrokenOff(t *testing.T, p Changer) {
	t.Helper()
	const begun, further = "/root/begun", "/root/go"
	if err := unix.Mkfifo(further, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	var text strings.Builder
	var mu sync.Mutex
	env := Env(t)
	env.Log = slog.New(slog.NewTextHandler(writer(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		if text.Len() == 0 {
			go func() { _ = os.WriteFile(further, []byte("go\n"), 0) }()
		}
		return text.Write(b)
	}), &slog.HandlerOptions{Level: slog.LevelWarn}))
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(begun); err == nil {
				cancel(errors.New("timed out after 1s"))
			}
			<-time.After(10 * time.Millisecond)
		}
	}()
	err := Install(ctx, env, p, "muster-slow", "present")
	if err == nil || !strings.Contains(err.Error(), "timed out after 1s; it was already changing packages and finished") {
		t.Errorf("the error is %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := text.String(); !strings.Contains(got, "package change in progress, waiting for its end") {
		t.Errorf("the log says %q", got)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
