// Command natsserver is a nats-server for a machine of the rigs.
//
//	natsserver PORT DIRECTORY  listens on the port of the loopback interface, with JetStream
//	natsserver -c FILE         has the configuration of a file, and reloads it at SIGHUP
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "natsserver:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: natsserver PORT DIRECTORY, or natsserver -c FILE")
	}
	opts, err := options(args[0], args[1])
	if err != nil {
		return err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	if args[0] == "-c" {
		s.ConfigureLogger()
	}
	s.Start()
	s.WaitForShutdown()

	return nil
}

func options(first, second string) (*server.Options, error) {
	if first == "-c" {
		return server.ProcessConfigFile(second)
	}
	port, err := strconv.Atoi(first)
	if err != nil {
		return nil, err
	}

	return &server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: second}, nil
}
