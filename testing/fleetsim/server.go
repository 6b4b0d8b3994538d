package fleetsim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/musterfleet/muster/testing/actor"
)

// role is the role of a test binary that is the server.
const role = "nats-server"

// Roles are the roles that the TestMain of a package must give to actor.Main.
func Roles() map[string]func() error { return map[string]func() error{role: serve} }

// Server is a nats-server in a separate process, on loopback.
type Server struct {
	process *actor.Actor
	dir     string
}

// StartServer runs a server with a configuration until the test ends.
func StartServer(tb testing.TB, config string) *Server {
	tb.Helper()
	s := &Server{dir: tb.TempDir()}
	s.write(tb, config)
	s.process = actor.Play(tb, role, s.dir)

	return s
}

// configFile and portFile are files through which the server gets its configuration and returns its port.
const (
	configFile = "nats.conf"
	portFile   = "port"
)

func (s *Server) write(tb testing.TB, config string) {
	tb.Helper()
	text := fmt.Sprintf("listen: \"127.0.0.1:-1\"\njetstream: {store_dir: %q, max_file_store: 64GB, max_memory_store: 1GB}\nwrite_deadline: 30s\n%s", filepath.Join(s.dir, "store"), config)
	if err := os.WriteFile(filepath.Join(s.dir, configFile), []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// serve is the process of a server, until its input ends.
func serve() error {
	dir := os.Args[1]
	opts, err := server.ProcessConfigFile(filepath.Join(dir, configFile))
	if err != nil {
		return err
	}
	// Signals are handled here: the server's own handler ends the process without a word.
	opts.NoLog, opts.NoSigs = true, true
	srv, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		return errors.New("the server does not accept connections")
	}
	if err := os.WriteFile(filepath.Join(dir, portFile), []byte(srv.ClientURL()), 0o600); err != nil {
		return err
	}
	reloads(srv)
	actor.Ready()
	_, _ = os.Stdin.Read(make([]byte, 1))
	srv.Shutdown()
	srv.WaitForShutdown()

	return nil
}

// URL is where clients connect to.
func (s *Server) URL(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, portFile))
	if err != nil {
		tb.Fatal(err)
	}

	return string(text)
}

// Reload gives the server another configuration.
func (s *Server) Reload(tb testing.TB, config string) {
	tb.Helper()
	s.write(tb, config)
	if err := syscall.Kill(s.process.PID(), syscall.SIGHUP); err != nil {
		tb.Fatal(err)
	}
}

// Memory returns the largest resident memory of the server so far, in bytes.
func (s *Server) Memory(tb testing.TB) int64 {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.PID()))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		tb.Fatal(err)
	}

	return kib << 10
}

// CPU returns the time that the server has computed so far.
func (s *Server) CPU(tb testing.TB) time.Duration {
	tb.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.PID()))
	if err != nil {
		tb.Fatal(err)
	}
	// The fields after the name, which is in parentheses: user time is the 12th of
	// them, system time the 13th, in hundredths of a second.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		ticks += n
	}

	return time.Duration(ticks) * (time.Second / 100)
}
