// Package serverurl checks the URLs of NATS servers: a client of NATS takes any scheme, and
// connects without TLS where it is not tls or wss. Pure.
package serverurl

import (
	"fmt"
	"net/url"
	"slices"
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
// unknown: never one without TLS for one that has it. It is that of other clients, or has the
// letters of one in another order or number.
func meant(scheme string) string {
	switch scheme {
	case "ssl", "https", "natss", "nats+tls", "tls+nats", "tcps":
		return "tls"
	case "http", "tcp":
		return "nats"
	case "websocket":
		return "ws"
	case "websockets":
		return "wss"
	}
	switch letters(scheme) {
	case letters("tls"):
		return "tls"
	case letters("nats"):
		return "nats"
	case letters("ws"): // and of wss
		if len(scheme) > len("ws") {
			return "wss"
		}
		return "ws"
	default:
		return ""
	}
}

// letters returns those of a word, each once, in order.
func letters(word string) string {
	return string(slices.Compact(slices.Sorted(slices.Values([]byte(word)))))
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
