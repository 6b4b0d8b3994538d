package health

import (
	"maps"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// attributes are those of each kind of goss rule. A test of package goss holds
// them against goss itself, which only the program that evaluates rules links.
func attributes() map[string][]string {
	out := map[string][]string{}
	for kind, words := range map[string]string{
		"addr":         "address local-address reachable timeout",
		"command":      "exec exit-status stderr stdout timeout",
		"dns":          "addrs resolvable resolve resolveable server timeout",
		"file":         "contains contents exists filetype gid group linked-to md5 mode owner path sha256 sha512 size uid",
		"group":        "exists gid groupname",
		"http":         "allow-insecure body ca-file cert-file headers key-file method no-follow-redirects password proxy request-body request-headers status timeout url username",
		"interface":    "addrs exists mtu name",
		"kernel-param": "name value",
		"matching":     "as-reader content matches",
		"mount":        "exists filesystem mountpoint opts source timeout usage vfs-opts",
		"package":      "installed name versions",
		"port":         "ip listening port",
		"process":      "comm running",
		"service":      "enabled name runlevels running",
		"user":         "exists gid groups home shell uid username",
	} {
		out[kind] = append(strings.Fields(words), "meta", "skip", "title")
	}

	return out
}

// timed gives rules the time of their check where they have none of their own and
// goss would end them sooner. That is left as it is where nothing in time is an
// answer, as it is of addresses and names.
func timed(rules model.GossRules, timeout time.Duration) model.GossRules {
	out := maps.Clone(rules)
	for _, kind := range []string{"command", "http", "mount"} {
		if len(rules[kind]) == 0 {
			continue
		}
		out[kind] = maps.Clone(rules[kind])
		for name, rule := range out[kind] {
			if rule["timeout"] == nil {
				rule = maps.Clone(rule)
				rule["timeout"] = timeout.Milliseconds()
				out[kind][name] = rule
			}
		}
	}

	return out
}
