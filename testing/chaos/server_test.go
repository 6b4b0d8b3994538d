package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/loopback"
	"github.com/musterfleet/muster/testing/natstest"
)

// everyReport is more reports than a test has: the judge wants them all.
const everyReport = 1 << 20

// natsServer is a nats-server in a separate process.
type natsServer struct {
	*process
	t    *testing.T
	name string
	url  string
	file string
	log  hosttest.LogText
}

// startServers starts servers that know each other, and returns when they are provisioned.
func startServers(t *testing.T, count int) ([]*natsServer, *kvtest.Store) {
	t.Helper()
	var addresses, urls []string
	for range 2 * count {
		addresses = append(addresses, loopback.Address(t).String())
	}
	var all []*natsServer
	for i, address := range addresses[:count] {
		dir := t.TempDir()
		s := &natsServer{t: t, name: fmt.Sprintf("n%d", i), url: "nats://" + address, file: filepath.Join(dir, "nats.conf")}
		config := fmt.Sprintf("server_name: %s\nlisten: %q\njetstream: {store_dir: %q, max_mem: 4Gb, max_file: 64Gb}\n", s.name, address, dir)
		if count > 1 {
			config += fmt.Sprintf("cluster: {name: c, listen: %q, routes: [nats://%s]}\n", addresses[count+i], strings.Join(addresses[count:], ", nats://"))
		}
		if err := os.WriteFile(s.file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		s.run()
		all, urls = append(all, s), append(urls, s.url)
	}
	nc, err := nats.Connect(strings.Join(urls, ","), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	store, err := kvtest.Of(nc, "")
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the streams are there", func() error {
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		_, err := store.Apply(ctx, provision.Options{Replicas: count, ReportCount: everyReport})
		return err
	})

	return all, store
}

// run starts the process, also after it was killed: address and store are the same.
func (s *natsServer) run() {
	s.t.Helper()
	s.process = start(s.t, &s.log, os.Args[0], nil, serverRole+"="+s.file)
}

// inProcess starts a server of this process, which no fault kills.
func inProcess(t *testing.T) (*natstest.Server, *kvtest.Store) {
	t.Helper()

	return kvtest.NewWith(t, provision.Options{ReportCount: everyReport})
}
