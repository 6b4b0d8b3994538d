package chaos

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
	"testing"

	"github.com/choria-io/fisk"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/musterfleet/muster/cmd/muster/agentcmd"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/resources"
)

// This program plays roles in separate processes, which are killed: an agent or a nats-server with the
// configuration of a file.
const (
	agentRole  = "MUSTER_TEST_CHAOS_AGENT"
	serverRole = "MUSTER_TEST_CHAOS_SERVER"
)

// mostWatches is the limit of inotify watches of an agent that is the first process of its user namespace.
const mostWatches = "MUSTER_TEST_CHAOS_WATCHES"

// goroutinesFile is where an agent lists its goroutines after SIGUSR1.
const goroutinesFile = "MUSTER_TEST_CHAOS_GOROUTINES"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(agentRole) != "":
		os.Exit(runAgent(os.Getenv(agentRole), os.Getenv(goroutinesFile)))
	case os.Getenv(serverRole) != "":
		if err := runServer(os.Getenv(serverRole)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}

// runAgent is `muster agent run`, of a muster that has one more type.
func runAgent(config, goroutines string) int {
	if most := os.Getenv(mostWatches); most != "" {
		// The limit of a user namespace, and no setting of the machine.
		if err := os.WriteFile("/proc/sys/user/max_inotify_watches", []byte(most), 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		for range asked {
			list(goroutines)
		}
	}()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	stop := cli.NewInterrupt()
	defer stop.Watch(cancel)()
	env := cli.NewEnv(append(resources.All(), newExploding()), os.Stdin, os.Stdout, os.Stderr, stop)
	defer env.Close()
	app := fisk.New("muster", "")
	env.AddGlobals(app)
	agentcmd.Add(env, app)
	_, err := app.Parse([]string{"agent", "run", "--config", config})
	if err == nil {
		_, err = env.Run(ctx)
	}

	return stop.ExitCode(cli.Report(os.Stderr, err))
}

// list writes the goroutines to a file that is there when it is complete.
func list(path string) {
	f, err := os.Create(path + ".new")
	if err != nil {
		return // it is unreadable then, and the test fails
	}
	_ = pprof.Lookup("goroutine").WriteTo(f, 1)
	_ = f.Close()
	_ = os.Rename(path+".new", path)
}

// runServer runs a nats-server until it is killed.
func runServer(config string) error {
	opts, err := server.ProcessConfigFile(config)
	if err != nil {
		return err
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	srv.ConfigureLogger()
	srv.Start()
	srv.WaitForShutdown()

	return nil
}
