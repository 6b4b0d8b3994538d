package config

import (
	"errors"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/model"
)

// Metrics configures the metrics endpoint.
type Metrics struct {
	Listen string `json:"listen" doc:"Where /metrics is served for Prometheus: an address on loopback (127.0.0.1:9780) or a socket (unix:/run/muster/metrics.sock). Empty: nowhere."`
}

// maxSocket is the maximum length of a socket path in bytes, as the kernel limits it.
const maxSocket = 107

// Address returns the network and address for net.Listen, both empty if metrics are off. It returns an
// error if Listen is invalid.
func (m Metrics) Address() (network, address string, err error) {
	if m.Listen == "" {
		return "", "", nil
	}
	if path, ok := strings.CutPrefix(m.Listen, "unix:"); ok {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" || len(path) > maxSocket || strings.ContainsRune(path, 0) {
			return "", "", errors.New("is not the absolute path of a socket, of at most 107 bytes")
		}
		return "unix", path, nil
	}
	at, err := netip.ParseAddrPort(m.Listen)
	switch {
	case err != nil || at.Port() == 0 || at.Addr().Zone() != "":
		return "", "", errors.New("is neither an IP address with a port nor a socket")
	case !at.Addr().IsLoopback():
		return "", "", errors.New("is not on loopback: it would show other machines what runs here")
	default:
		return "tcp", at.String(), nil
	}
}

func (c *Config) checkMetrics(out *model.Problems) {
	if _, _, err := c.Metrics.Address(); err != nil {
		out.Property("metrics.listen", "write 127.0.0.1:9780, [::1]:9780 or unix:/run/muster/metrics.sock", "`metrics.listen` %q %v", c.Metrics.Listen, err)
	}
}
