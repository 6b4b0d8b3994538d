//go:build system

package rigs_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/rigs"
)

// BenchmarkServiceDrift stops by hand a service that an agent holds, and measures by systemd's own
// times from when it was stopped until systemd begins to start it again: what systemd takes for
// either is not counted.
func BenchmarkServiceDrift(b *testing.B) {
	n := node{Machine: rigs.Boot(b), t: b}
	n.Copy(build(b), "/usr/local/bin/muster")
	// Enabled, or systemd forgets its times once it is stopped.
	n.write("/etc/systemd/system/held.service", "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n")
	const manifest = "muster: {flapping: off, resources: [{service: [{held: {ensure: running}}]}]}\n"
	n.write("/root/record.json", fmt.Sprintf(`{"key":"node.web01.held","good":{"key":"node.web01.held","revision":7,"value":%q}}`, base64.StdEncoding.EncodeToString([]byte(manifest))))
	n.write("/etc/muster/agent.yaml", "node: web01\n")
	n.write("/etc/systemd/system/muster.service", "[Service]\nType=notify\nExecStart=/usr/local/bin/muster agent run\nDelegate=yes\n")
	n.sh(`mkdir -p -m 700 /var/lib/muster/assignments
install -m 600 /root/record.json /var/lib/muster/assignments/node.web01.held.json
systemctl daemon-reload; systemctl enable held; systemctl start muster`)
	kvtest.Eventually(b, "the service runs, watched", func() (bool, string) {
		r := n.Run("muster", "agent", "status", "--json")
		return strings.Contains(r.Stdout, `"watches": 1`) && n.Run("systemctl", "is-active", "held").Code == 0, r.Stdout
	})
	at := func(property string) time.Duration {
		us, err := strconv.ParseInt(strings.TrimSpace(n.sh("systemctl show --value -p "+property+" held")), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		return time.Duration(us) * time.Microsecond
	}
	var all []time.Duration
	for b.Loop() {
		n.sh("systemctl stop held")
		stopped := at("InactiveEnterTimestampMonotonic")
		kvtest.Eventually(b, "the service is back", func() (bool, string) {
			return at("ActiveEnterTimestampMonotonic") > stopped, ""
		})
		all = append(all, at("InactiveExitTimestampMonotonic")-stopped)
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(all[len(all)-1].Microseconds())/1000, "max-ms")
}
