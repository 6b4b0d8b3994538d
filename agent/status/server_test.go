package status_test

import (
	"context"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/loopback"
)

// deadline is far more than anything here takes.
const deadline = time.Minute

// serve serves the metrics of an agent until the test ends or stop is called.
func serve(t *testing.T, a *agent, network, address string) (stop func()) {
	t.Helper()
	s, err := status.ListenMetrics(t.Context(), hosttest.New(t), network, address, a.metrics())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)

	return stop
}

// get asks an address for a path.
func get(t *testing.T, method, network, address, path string) (status int, body string, err error) {
	t.Helper()
	client := http.Client{Timeout: deadline, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}}
	request, err := http.NewRequestWithContext(t.Context(), method, "http://muster"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)

	return response.StatusCode, string(text), err
}

func TestServesMetricsAlone(t *testing.T) {
	t.Parallel()
	address := loopback.Address(t).String()
	stop := serve(t, newAgent(), "tcp", address)
	for _, c := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/metrics", 200, "# TYPE muster_build_info gauge\nmuster_build_info{node=\"web01\",version=\"1.2.3\"} 1\n"},
		{"HEAD", "/metrics", 200, ""},
		{"POST", "/metrics", 405, ""},
		{"GET", "/", 404, ""},
		{"GET", "/debug/pprof/", 404, ""},
	} {
		status, body, err := get(t, c.method, "tcp", address, c.path)
		if err != nil || status != c.status || !strings.Contains(body, c.body) || strings.Contains(body, "go_") {
			t.Errorf("%s %s: %d %s (%v)", c.method, c.path, status, body, err)
		}
	}
	stop()
	if _, _, err := get(t, "GET", "tcp", address, "/metrics"); err == nil {
		t.Error("it is served after the end")
	}
	// Nothing keeps the address from the next agent.
	serve(t, newAgent(), "tcp", address)
}

// TestSilentConnectionsAreEnded: any user of the machine can open them, more than are
// accepted at once.
func TestSilentConnectionsAreEnded(t *testing.T) {
	t.Parallel()
	address := loopback.Address(t).String()
	serve(t, newAgent(), "tcp", address)
	for range 12 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if status, _, err := get(t, "GET", "tcp", address, "/metrics"); err != nil || status != 200 {
		t.Errorf("after silent connections: %d (%v)", status, err)
	}
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = status.ListenMetrics(t.Context(), hosttest.New(t), "tcp", l.Addr().String(), newAgent().metrics())
	if err == nil || err.Error() != "metrics.listen: another process listens on "+l.Addr().String()+": end it, or choose another address" {
		t.Errorf("the error is %v", err)
	}
}

func TestSocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made")
	path := filepath.Join(dir, "metrics.sock")
	stop := serve(t, newAgent(), "unix", path)
	if status, _, err := get(t, "GET", "unix", path, "/metrics"); err != nil || status != 200 {
		t.Errorf("answered %d (%v)", status, err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != fs.ModeSocket|0o660 {
		t.Errorf("the socket: %v (%v)", info, err)
	}
	if info, err := os.Lstat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("its directory: %v (%v)", info, err)
	}
	if _, err := status.ListenMetrics(t.Context(), hosttest.New(t), "unix", path, newAgent().metrics()); err == nil || !strings.Contains(err.Error(), "another process listens on "+path+": end it") {
		t.Errorf("a second agent: %v", err)
	}
	if status, _, err := get(t, "GET", "unix", path, "/metrics"); err != nil || status != 200 {
		t.Errorf("then the first answers %d (%v)", status, err)
	}
	stop()
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is still there")
	}
}

// kill leaves a socket as a killed process does.
func kill(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSocketOfAKilledAgentIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "metrics.sock")
	kill(t, path)
	serve(t, newAgent(), "unix", path)
	if status, _, err := get(t, "GET", "unix", path, "/metrics"); err != nil || status != 200 {
		t.Errorf("answered %d (%v)", status, err)
	}
}

// TestSocketHasTheGroupOfItsDirectory where this has the setgid bit.
func TestSocketHasTheGroupOfItsDirectory(t *testing.T) {
	t.Parallel()
	dir, group := t.TempDir(), os.Getegid()
	if os.Geteuid() == 0 {
		group = hosttest.Stranger // only root may choose any
	}
	if err := os.Chown(dir, -1, group); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, fs.ModeSetgid|0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "metrics.sock")
	serve(t, newAgent(), "unix", path)
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil || int(st.Gid) != group || st.Mode&0o777 != 0o660 {
		t.Errorf("group %d and mode %o in a directory of group %d (%v)", st.Gid, st.Mode, group, err)
	}
}

func TestSocketThatCannotBe(t *testing.T) {
	t.Parallel()
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "file"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(other, "file"), filepath.Join(other, "link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(open, "metrics.sock"):  "other users may replace files in " + open,
		filepath.Join(other, "file"):         "exists and is not a socket: remove it",
		filepath.Join(other, "link"):         "exists and is not a socket: remove it",
		filepath.Join(other, "file", "sock"): "directory",
	} {
		if _, err := status.ListenMetrics(t.Context(), hosttest.New(t), "unix", path, newAgent().metrics()); err == nil || !strings.HasPrefix(err.Error(), "metrics.listen: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %q", path, err, want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(other, "file")); err != nil || string(got) != "kept" {
		t.Errorf("the file holds %q (%v)", got, err)
	}
}
