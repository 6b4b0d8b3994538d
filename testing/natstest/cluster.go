package natstest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/loopback"
)

// StartCluster runs three servers that know each other, with one configuration.
func StartCluster(tb testing.TB, config string) [3]*Server {
	tb.Helper()
	var listen [3]string
	for i := range listen {
		listen[i] = loopback.Address(tb).String()
	}
	var servers [3]*Server
	for i := range servers {
		servers[i] = Start(tb, WithConfig(fmt.Sprintf("server_name: n%d\ncluster: {name: c, listen: %q, routes: [nats://%s]}\n%s",
			i, listen[i], strings.Join(listen[:], ", nats://"), config)))
	}

	return servers
}
