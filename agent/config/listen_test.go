package config_test

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/agent/config"
)

func TestMetricsAreServedOnThisMachine(t *testing.T) {
	const remedy = "(write 127.0.0.1:9780, [::1]:9780 or unix:/run/muster/metrics.sock)"
	for listen, want := range map[string]string{
		"":                                  " ",
		"127.0.0.1:9780":                    "tcp 127.0.0.1:9780",
		"127.9.9.9:1":                       "tcp 127.9.9.9:1",
		"[::1]:9780":                        "tcp [::1]:9780",
		"unix:/run/muster/metrics.sock":     "unix /run/muster/metrics.sock",
		"unix:/" + strings.Repeat("x", 106): "unix /" + strings.Repeat("x", 106),
		"0.0.0.0:9780":                      "is not on loopback",
		"192.0.2.1:9780":                    "is not on loopback",
		"[::]:9780":                         "is not on loopback",
		"[::ffff:192.0.2.1]:9780":           "is not on loopback",
		"localhost:9780":                    "is neither",
		":9780":                             "is neither",
		"9780":                              "is neither",
		"127.0.0.1":                         "is neither",
		"127.0.0.1:0":                       "is neither",
		"127.0.0.1:http":                    "is neither",
		"[::1%lo]:9780":                     "is neither",
		"on":                                "is neither",
		"unix:metrics.sock":                 "is not the absolute path",
		"unix:@muster":                      "is not the absolute path",
		"unix:":                             "is not the absolute path",
		"unix:/":                            "is not the absolute path",
		"unix:/run/../metrics.sock":         "is not the absolute path",
		"unix:/run/":                        "is not the absolute path",
		"unix:/run/\x00":                    "is not the absolute path",
		"unix:/" + strings.Repeat("x", 107): "is not the absolute path",
		"http://127.0.0.1:9780":             "is neither",
		"unix:///run/muster/metrics.sock":   "is not the absolute path",
	} {
		c := config.Default("web01")
		c.Metrics.Listen = listen
		network, address, err := c.Metrics.Address()
		problem := c.Validate().Err()
		if !strings.HasPrefix(want, "is ") {
			if got := network + " " + address; err != nil || problem != nil || got != want {
				t.Errorf("%q is %q (%v, %v), want %q", listen, got, err, problem, want)
			}
			continue
		}
		if err == nil || network != "" || problem == nil || !strings.Contains(problem.Error(), want) || !strings.HasSuffix(problem.Error(), remedy) {
			t.Errorf("%q gives %v, want %q and the remedy", listen, problem, want)
		}
	}
	_, err := config.Parse("agent.yaml", []byte("node: a\nmetrics:\n  listen: 0.0.0.0:9780\n"), config.Default("web01"))
	if err == nil || !strings.HasPrefix(err.Error(), "agent.yaml:3:11: `metrics.listen` \"0.0.0.0:9780\" is not on loopback") {
		t.Errorf("the file gives %v", err)
	}
}
