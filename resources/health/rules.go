package health

import (
	"maps"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// sort is the type of argument of a goss attribute.
type sort string

// The sorts. An attribute without one takes any matcher.
const (
	sortText  sort = "text"
	sortTexts sort = "texts"
	sortBool  sort = "bool"
	sortTime  sort = "time" // milliseconds
	sortMap   sort = "map"
	sortAny   sort = "any"
	// sortTruth takes a matcher of a boolean, sortNumber one of a number,
	// sortLines one of lines, where a list holds patterns.
	sortTruth  sort = "truth"
	sortNumber sort = "number"
	sortLines  sort = "lines"
)

// kind is a kind of goss rules.
type kind struct {
	// attributes are the allowed attributes.
	attributes map[string]sort
	// needs are attributes; a rule has at least one of them.
	needs []string
}

// kinds are the kinds of goss rules. A test of package goss compares them with goss, because only that
// package links goss.
func kinds() map[string]kind {
	out := map[string]kind{}
	for name, words := range map[string]string{
		"addr":         "!reachable:truth address:text local-address:text timeout:time",
		"command":      "!exit-status:number exec:text stderr:lines stdout:lines timeout:time",
		"dns":          "!resolvable:truth !resolveable:truth addrs resolve:text server:text timeout:time",
		"file":         "!exists:truth contains:lines contents:lines filetype gid group linked-to md5 mode owner path:text sha256 sha512 size uid",
		"group":        "!exists:truth gid:number groupname:text",
		"http":         "!status allow-insecure:bool body:lines ca-file:text cert-file:text headers:lines key-file:text method:text no-follow-redirects:bool password:text proxy:text request-body:text request-headers:texts timeout:time url:text username:text",
		"interface":    "!exists:truth addrs mtu name:text",
		"kernel-param": "!value name:text",
		"matching":     "!matches as-reader:bool content:any",
		"mount":        "!exists:truth filesystem mountpoint:text opts source timeout:time usage vfs-opts",
		"package":      "!installed:truth name:text versions",
		"port":         "!listening:truth ip port:text",
		"process":      "!running:truth comm:text",
		"service":      "!enabled:truth !running:truth !runlevels name:text",
		"user":         "!exists:truth gid:number groups home shell uid:number username:text",
	} {
		k := kind{attributes: map[string]sort{"meta": sortMap, "skip": sortBool, "title": sortText}}
		for _, word := range strings.Fields(words) {
			key, takes, _ := strings.Cut(word, ":")
			key, needed := strings.CutPrefix(key, "!")
			k.attributes[key] = sort(takes)
			if needed {
				k.needs = append(k.needs, key)
			}
		}
		out[name] = k
	}

	return out
}

// timed sets the timeout of the check in rules that goss would stop earlier. Addresses and names keep their
// timeout, because for them no answer in time is a result.
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
