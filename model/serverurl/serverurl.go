// Package serverurl checks the URLs of NATS servers: a client of NATS takes any scheme, and
// connects without TLS where it is not tls or wss. Pure.
package serverurl

import (
	"fmt"
	"net/url"
	"strings"
)

// Check returns an error for what is no URL of a server; servers are URLs, separated by
// commas, each of which may lack its scheme.
func Check(servers string) error {
	for s := range strings.SplitSeq(servers, ",") {
		if err := check(s); err != nil {
			return err
		}
	}

	return nil
}

func check(server string) error {
	full := strings.TrimSpace(server)
	if !strings.Contains(full, "://") {
		full = "nats://" + full
	}
	u, err := url.Parse(full)
	if err == nil && !isScheme(u.Scheme) && u.Opaque == "" {
		hint := ""
		if meant := meant(u.Scheme); meant != "" {
			hint = " (did you mean " + meant + "://?)"
		}
		return fmt.Errorf("unknown scheme %s:// in %s: use nats://, tls://, ws:// or wss://%s", u.Scheme, WithoutCredentials(server), hint)
	}
	if err == nil && u.Hostname() != "" && (strings.Count(u.Host, ":") < 2 || u.Host[0] == '[') {
		return nil
	}

	return fmt.Errorf("%q is no URL of a server: write nats://host:4222 (and percent-encode what is special in a password)", WithoutCredentials(server))
}

func isScheme(scheme string) bool {
	switch scheme {
	case "nats", "tls", "ws", "wss":
		return true
	default:
		return false
	}
}

// meant returns the scheme that another one was probably meant to be, empty where that is
// unknown: never one without TLS for one that has it.
func meant(scheme string) string {
	switch scheme {
	case "tsl", "tl", "ts", "lts", "tlss", "ttls", "tlls", "ssl", "https", "natss", "nats+tls", "tls+nats", "tcps":
		return "tls"
	case "nat", "nast", "anats", "ntas", "natts", "nnats", "naats", "ats", "nts", "http", "tcp":
		return "nats"
	case "websocket", "w", "sw":
		return "ws"
	case "wws", "wsss", "wwss", "sws", "ssw", "websockets":
		return "wss"
	default:
		return ""
	}
}

// WithoutCredentials removes user, password and token from URLs, separated by commas.
func WithoutCredentials(servers string) string {
	list := strings.Split(servers, ",")
	for i, s := range list {
		scheme, rest, found := strings.Cut(strings.TrimSpace(s), "://")
		if !found || strings.ContainsAny(scheme, ":@/") {
			scheme, rest = "nats", strings.TrimSpace(s)
		}
		list[i] = scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
	}

	return strings.Join(list, ",")
}
