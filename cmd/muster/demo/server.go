//go:build !nodemo

package demo

import (
	"errors"
	"path/filepath"

	"github.com/nats-io/nats-server/v2/server"
)

// serve starts a nats-server with JetStream on a free port of the loopback interface, with accounts as
// a configuration file has them. What it stores is below dir.
func serve(accounts, dir string) (*embedded, error) {
	options := &server.Options{}
	if err := options.ProcessConfigString(accounts); err != nil {
		return nil, err
	}
	options.ServerName, options.Host, options.Port = "muster-demo", "127.0.0.1", server.RANDOM_PORT
	options.JetStream, options.StoreDir = true, filepath.Join(dir, "nats")
	options.NoSigs, options.NoLog = true, true
	s, err := server.NewServer(options)
	if err != nil {
		return nil, err
	}
	s.Start()
	stop := func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
	if !s.ReadyForConnections(patience) {
		stop()
		return nil, errors.New("the embedded nats-server did not start")
	}

	return &embedded{url: s.ClientURL(), version: server.VERSION, stop: stop}, nil
}
