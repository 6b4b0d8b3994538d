// Command node runs an agent, assigns it one manifest, and writes the coverage
// counters of what ran between the put and its report to the directory named by
// the first argument. It is built with -cover.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/coverage"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/cmd/muster/agentcmd"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/resources"
)

// patience bounds each wait.
const patience = time.Minute

const node = "web01"

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out string) (err error) {
	dir, err := os.MkdirTemp("", "muster-walk-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		return err
	}
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	if !srv.ReadyForConnections(patience) {
		return errors.New("the server is not ready")
	}
	nc, err := nats.Connect(srv.ClientURL())
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	store, err := kvstore.New(nc, "", "")
	if err != nil {
		return err
	}
	if _, err := provision.New(store).Apply(ctx, provision.Options{}); err != nil {
		return err
	}

	return assign(ctx, nc, dir, out)
}

// assign runs the agent and assigns one manifest to it.
func assign(ctx context.Context, nc *nats.Conn, dir, out string) error {
	events, err := nc.SubscribeSync("muster.report." + node + ".>")
	if err != nil {
		return err
	}
	config := config.Default(node)
	config.StateDir, config.FactsDir, config.NATS.Servers = filepath.Join(dir, "state"), filepath.Join(dir, "facts"), []string{nc.ConnectedUrl()}
	n, err := agentcmd.NewNode(ctx, config, agentcmd.NodeOptions{Types: resources.All(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer n.Close()
	running, stop := context.WithCancel(ctx)
	var agents sync.WaitGroup
	defer agents.Wait()
	defer stop()
	failed := make(chan error, 1)
	agents.Go(func() { failed <- n.Run(running, running) })
	if _, err := events.NextMsgWithContext(ctx); err != nil {
		return err // that of the start
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	bucket, err := js.KeyValue(ctx, "MUSTER_MANIFESTS")
	if err != nil {
		return err
	}
	text := fmt.Sprintf("muster:\n  resources:\n    - file: [%s: {content: hello, owner: '%d', group: '%d', mode: '0644'}]\n", filepath.Join(dir, "motd"), os.Geteuid(), os.Getegid())
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if _, err := bucket.PutString(ctx, "node."+node+".motd", text); err != nil {
		return err
	}
	for done := false; !done; {
		select {
		case err := <-failed:
			return err
		default:
		}
		m, err := events.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		done = m.Subject == "muster.report."+node+".run.changed"
	}

	return errors.Join(coverage.WriteMetaDir(out), coverage.WriteCountersDir(out))
}
