// Command natsserver is a nats-server with JetStream for a machine of the rigs.
// It listens on the loopback interface, on the port that is its first argument,
// and stores below the directory that is its second.
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
		return fmt.Errorf("usage: natsserver PORT DIRECTORY")
	}
	port, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: args[1]})
	if err != nil {
		return err
	}
	s.Start()
	s.WaitForShutdown()

	return nil
}
