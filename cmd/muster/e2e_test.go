package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/musterfleet/muster/testing/natstest"
)

// awaitFor is how long a condition may take to come true: far longer than it
// ever does, so that a slow machine does not fail.
const awaitFor = time.Minute

func TestMain(m *testing.M) {
	// Many users have umask 002, which lets others write to files that muster would trust.
	syscall.Umask(0o022)
	// Scripts mostly wait, for agents, batches and unreachable nodes, so more of them run in parallel than
	// there are processors.
	if err := flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	// muster starts itself as /proc/self/exe.
	testscript.Main(m, map[string]func(){"muster": main, "exe": main})
}

// TestCommandLine runs the scripts of testing/e2e: muster as its users see it.
func TestCommandLine(t *testing.T) {
	servers := &scriptServers{byScript: map[string]*natstest.Server{}}
	testscript.Run(t, testscript.Params{
		Dir:           "../../testing/e2e",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("UID", strconv.Itoa(os.Geteuid()))
			env.Setenv("GID", strconv.Itoa(os.Getegid()))
			env.Setenv("MUSTER_STATE_DIR", env.WorkDir+"/state")
			env.Setenv("MUSTER_CONFIG_DIR", env.WorkDir+"/config")
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("NO_COLOR", "1")
			env.Setenv("TZ", "UTC")
			env.Setenv("GORACE", "atexit_sleep_ms=0") // or each muster built with -race would wait a second at its end
			// Nothing in a script may reach a server that happens to run on this machine.
			env.Setenv("NATS_URL", "nats://127.0.0.1:1")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"natsserver": func(ts *testscript.TestScript, _ bool, args []string) { servers.command(t, ts, args) },
			"kvput":      func(ts *testscript.TestScript, _ bool, args []string) { kvPut(t, ts, args) },
			"await":      await,
			"expand":     expand,
			"mode":       checkMode,
			"append":     appendTo,
			"exitcode":   exitCode,
		},
	})
}

// TestScriptsWaitByAwait: a shell loop in a script would have no end and no error message.
func TestScriptsWaitByAwait(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("../../testing/e2e/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	loop := regexp.MustCompile(`(?m)^(!\s*)?exec .*\b(until|while)\b.*\bdo\b.*\bdone\b`)
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if found := loop.Find(text); found != nil {
			t.Errorf("%s waits in a loop, and not by await: %s", filepath.Base(path), found)
		}
	}
}

// scriptServers are the nats-servers of the scripts.
type scriptServers struct {
	mu       sync.Mutex
	byScript map[string]*natstest.Server
}

// command is natsserver start|stop|restart, for a real nats-server of the script's own.
func (s *scriptServers) command(t *testing.T, ts *testscript.TestScript, args []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	server := s.byScript[ts.Name()]
	switch {
	case (len(args) == 1 || len(args) == 2) && args[0] == "start" && server == nil:
		var opts []natstest.Option
		if len(args) == 2 {
			opts = append(opts, natstest.WithConfig(ts.ReadFile(args[1])))
		}
		server = natstest.Start(t, opts...)
		s.byScript[ts.Name()] = server
		ts.Setenv("NATS_URL", server.URL())
	case len(args) == 1 && args[0] == "stop" && server != nil:
		server.Stop()
	case len(args) == 1 && args[0] == "restart" && server != nil:
		server.Restart(t)
	default:
		ts.Fatalf("usage: natsserver start [FILE]|stop|restart")
	}
}

// await runs a command until it succeeds and its output matches: await REGEXP muster …, or await ” test -e FILE. Scripts
// wait by it, and by no loop of a shell: that would have no end.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: await REGEXP command …")
	}
	want := regexp.MustCompile("(?m)" + args[0])
	ctx, cancel := context.WithTimeout(context.Background(), awaitFor)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT)
	defer stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ts.Exec(args[1], args[2:]...)
		out := ts.ReadFile("stdout") + ts.ReadFile("stderr")
		if err == nil && want.MatchString(out) != neg {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			ts.Fatalf("%q did not match %q in time: %v\n%s", strings.Join(args[1:], " "), args[0], err, out)
		}
	}
}

// expand replaces $NAME in files by the environment: expand FILE….
func expand(ts *testscript.TestScript, _ bool, args []string) {
	names := regexp.MustCompile(`\$(WORK|UID|GID|NATS_URL)\b`)
	for _, file := range args {
		text := names.ReplaceAllStringFunc(ts.ReadFile(file), func(name string) string { return ts.Getenv(name[1:]) })
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text), 0o644))
	}
}

// checkMode fails unless a file has a mode: mode 0644 FILE.
func checkMode(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	info, err := os.Lstat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := uint64(info.Mode().Perm()); got != want {
		ts.Fatalf("%s has mode %04o, not %s", args[1], got, args[0])
	}
}

// appendTo adds a line to a file: append FILE TEXT.
func appendTo(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	ts.Check(err)
	_, err = f.WriteString(args[1] + "\n")
	ts.Check(errors.Join(err, f.Close()))
}

// exitCode fails unless a command ends with an exit code: exitcode 2 muster ….
func exitCode(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit interface{ ExitCode() int }
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, not %d", got, want)
	}
}

// kvPut stores a file under a key as any NATS client does, without muster: kvput BUCKET KEY FILE.
func kvPut(t *testing.T, ts *testscript.TestScript, args []string) {
	nc, err := nats.Connect(ts.Getenv("NATS_URL"), nats.Timeout(awaitFor))
	ts.Check(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	ts.Check(err)
	kv, err := js.KeyValue(t.Context(), args[0])
	ts.Check(err)
	_, err = kv.Put(t.Context(), args[1], []byte(ts.ReadFile(args[2])))
	ts.Check(err)
}
