package config

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// Validate returns all problems of the configuration, by key.
func (c *Config) Validate() model.Problems { return append(c.checkKeys(), c.checkPairs()...) }

func (c *Config) checkPairs() model.Problems {
	var out model.Problems
	if (c.NATS.User == "") != (c.NATS.PasswordFile == "") {
		out.Property("nats.user", "set both or none", "`nats.user` and `nats.password_file` belong together")
	}
	if (c.NATS.TLSCert == "") != (c.NATS.TLSKey == "") {
		out.Property("nats.tlscert", "set both or none", "`nats.tlscert` and `nats.tlskey` belong together")
	}

	return out
}

func (c *Config) checkKeys() model.Problems {
	var out model.Problems
	if model.CheckNode(c.Node, nil) != nil {
		remedy := "use letters, digits, - and _ only, not beginning with _"
		if id := strings.ReplaceAll(c.Node, ".", "_"); model.CheckNode(id, nil) == nil {
			remedy = "write " + id
		}
		out.Property("node", remedy+"; a dot would let it match keys of other nodes", "%q is not a valid node id", c.Node)
	}
	checkGroups(&out, "groups", c.Groups)
	checkGroups(&out, "groups_order", c.GroupsOrder)
	if !model.IsToken(c.Prefix) || c.Prefix != strings.ToLower(c.Prefix) {
		out.Property("prefix", "use lower-case letters, digits, - and _ only", "%q is not a valid prefix", c.Prefix)
	}
	c.checkTrust(&out)
	c.checkTimes(&out)
	c.checkNumbers(&out)
	c.checkMetrics(&out)
	if !filepath.IsAbs(c.StateDir) {
		out.Property("state_dir", "", "%q must be an absolute path", c.StateDir)
	}
	if c.FactsDir != "" && !filepath.IsAbs(c.FactsDir) {
		out.Property("facts_dir", "", "%q must be an absolute path", c.FactsDir)
	}
	oneOf(&out, "inventory", c.Inventory, "on", "off")
	oneOf(&out, "log.format", c.Log.Format, "text", "json")
	oneOf(&out, "log.level", c.Log.Level, "debug", "info", "warn", "error")
	for i, servers := range c.NATS.Servers {
		if err := model.CheckServerURLs(servers); err != nil {
			out.Property(fmt.Sprintf("nats.servers.%d", i), "", "%v", err)
		}
	}
	if p := c.NATS.APIPrefix; p != "" && !isSubject(p) {
		out.Property("nats.api_prefix", "write it as the server's configuration has it, without a dot at the end: fleet.API", "`nats.api_prefix` %q is no subject", p)
	}

	return out
}

func isSubject(text string) bool {
	for token := range strings.SplitSeq(text, ".") {
		if token == "" || strings.ContainsAny(token, "*> \t\r\n") {
			return false
		}
	}

	return true
}

func checkGroups(out *model.Problems, property string, groups []string) {
	for i, g := range groups {
		key := fmt.Sprintf("%s.%d", property, i)
		switch {
		case model.CheckName(g) != nil:
			out.Property(key, "use letters, digits, - and _ only, not beginning with _", "%q is not a valid group", g)
		case g == model.GroupAll:
			out.Property(key, "leave it out", "every node is in the group all")
		case slices.Index(groups, g) < i:
			out.Property(key, "keep one of them", "the group %s is there twice", g)
		}
	}
}

// checkTrust also reports families of this node with fewer keys than the threshold: the node could
// accept no assignment of them.
func (c *Config) checkTrust(out *model.Problems) {
	seen := map[string]bool{}
	for i, k := range c.Trust.Keys {
		at := fmt.Sprintf("trust.keys.%d", i)
		if k.Key == "" {
			out.Property(at, "muster trust key ls prints it", "`key` is missing: the public part of a signing key")
			continue
		}
		if _, err := signed.ParseKey(k.Key); err != nil {
			out.Property(at+".key", "", "`key` of `trust.keys`: %v", err)
		}
		if seen[k.Key] {
			out.Property(at+".key", "keep one of them", "the key %s is there twice", k.Key)
		}
		seen[k.Key] = true
		for j, family := range k.Families {
			if signed.CheckFamily(family) != nil {
				out.Property(fmt.Sprintf("%s.families.%d", at, j), "write group.<group>, node.<node>, group.* or node.*", "%q is not a family", family)
			}
		}
	}
	if c.Trust.Threshold < 1 {
		out.Property("trust.threshold", "", "`trust.threshold` must be at least 1")
		return
	}
	policy := c.Policy()
	if !policy.On() {
		if c.Trust.Threshold > 1 {
			out.Property("trust.threshold", "add keys, muster trust key new makes one, or leave `trust.threshold` out", "`trust.threshold` is %d, and `trust.keys` has no keys: signatures would not be looked at", c.Trust.Threshold)
		}
		return
	}
	for _, family := range model.Families(c.Node, c.Groups) {
		if can := policy.Signers(family); can > 0 && can < c.Trust.Threshold {
			out.Property("trust.threshold", "add keys for it, or lower `trust.threshold`", "only %d of `trust.keys` may sign for %s, and %d must", can, family, c.Trust.Threshold)
		}
	}
}

func (c *Config) checkTimes(out *model.Problems) {
	for _, t := range []struct {
		key         string
		value       model.Duration
		least, most time.Duration
	}{
		{"interval", c.Interval, time.Second, 30 * 24 * time.Hour},
		{"health_interval", c.HealthInterval, 0, 30 * 24 * time.Hour},
		{"shutdown_timeout", c.ShutdownTimeout, 0, 24 * time.Hour},
		{"heartbeat", c.Heartbeat, time.Second, 24 * time.Hour},
		{"state_ttl", c.StateTTL, 2 * time.Second, 30 * 24 * time.Hour},
	} {
		if t.value.Std() < t.least || t.value.Std() > t.most {
			out.Property(t.key, "", "`%s` must be from %s to %s, not %s", t.key, t.least, t.most, t.value)
		}
	}
	if c.HealthInterval > 0 && c.HealthInterval.Std() < time.Second {
		out.Property("health_interval", "0s is never", "`health_interval` must be at least 1s, not %s", c.HealthInterval)
	}
	if c.StateTTL < 2*c.Heartbeat {
		out.Property("state_ttl", "make it at least twice the heartbeat, or a node counts as unreachable between two", "`state_ttl` %s is too short for a heartbeat of %s", c.StateTTL, c.Heartbeat)
	}
}

func (c *Config) checkNumbers(out *model.Problems) {
	if c.OutboxMaxBytes < 1<<20 {
		out.Property("outbox_max_bytes", "", "`outbox_max_bytes` must be at least 1MiB, not %s", c.OutboxMaxBytes)
	}
	if c.ReadAllEvery < 0 {
		out.Property("read_all_every", "", "`read_all_every` must not be negative")
	}
	if c.MaxDepth < 1 {
		out.Property("max_depth", "", "`max_depth` must be at least 1")
	}
}

func oneOf(out *model.Problems, key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		out.Property(key, "one of "+strings.Join(allowed, ", "), "`%s` cannot be %q", key, value)
	}
}

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
