package fleetsim

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/nats-io/nats-server/v2/server"
)

// reloads has a server read its configuration again at each SIGHUP, as
// `systemctl reload` of a packaged nats-server does.
func reloads(srv *server.Server) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		for range signals {
			if err := srv.Reload(); err != nil {
				fmt.Fprintln(os.Stderr, "reload:", err)
			}
		}
	}()
}
