package natstest

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// StartCluster runs three servers that know each other, with one configuration.
func StartCluster(tb testing.TB, config string) [3]*Server {
	tb.Helper()
	var listen [3]string
	for i := range listen {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		listen[i] = l.Addr().String()
		if err := l.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	var servers [3]*Server
	for i := range servers {
		servers[i] = Start(tb, WithConfig(fmt.Sprintf("server_name: n%d\ncluster: {name: c, listen: %q, routes: [nats://%s]}\n%s",
			i, listen[i], strings.Join(listen[:], ", nats://"), config)))
	}

	return servers
}
