package main

import (
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/testing/loopback"
)

// TestCompletionAsksOnce: whatever is completed, a server that does not answer is asked once. Each time takes as
// long as a shell waits for names.
func TestCompletionAsksOnce(t *testing.T) {
	t.Setenv("MUSTER_CONFIG_DIR", t.TempDir())
	for _, words := range []string{"fleet history", "fleet run --node web01 --group", "fleet run --node=web01 --manifest"} {
		t.Run(words, func(t *testing.T) {
			silent, err := net.Listen("tcp", loopback.Address(t).String())
			if err != nil {
				t.Fatal(err)
			}
			var asked atomic.Int32
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for {
					conn, err := silent.Accept()
					if err != nil {
						return
					}
					defer conn.Close()
					asked.Add(1)
				}
			}()
			args := append([]string{"--completion-bash", "--server", "nats://" + silent.Addr().String()}, strings.Fields(words)...)
			var said strings.Builder
			run(resources.All(), append(args, ""), strings.NewReader(""), io.Discard, &said)
			silent.Close()
			<-ended
			if got := asked.Load(); got != 1 || said.String() != "" {
				t.Errorf("the server was asked %d times, and muster said %q", got, said.String())
			}
		})
	}
}
