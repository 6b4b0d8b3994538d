package model

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// CheckServerURLs returns an error if one of the comma-separated URLs is not the URL of a NATS
// server. A URL may lack its scheme. The check is needed because the NATS client accepts every
// scheme and connects without TLS unless the scheme is tls or wss.
func CheckServerURLs(servers string) error {
	for s := range strings.SplitSeq(servers, ",") {
		if err := checkServerURL(s); err != nil {
			return err
		}
	}

	return nil
}

func checkServerURL(server string) error {
	full := strings.TrimSpace(server)
	if !strings.Contains(full, "://") {
		full = "nats://" + full
	}
	u, err := url.Parse(full)
	if err == nil && !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) && u.Opaque == "" {
		return fmt.Errorf("unknown scheme %s:// in %s: use nats://, tls://, ws:// or wss://", u.Scheme, StripCredentials(server))
	}
	if err == nil && u.Hostname() != "" && (strings.Count(u.Host, ":") < 2 || u.Host[0] == '[') {
		return nil
	}

	return fmt.Errorf("%q is not a server URL: write nats://host:4222 (percent-encode special characters of a password)", StripCredentials(server))
}

// StripCredentials removes user, password and token from URLs, separated by commas.
func StripCredentials(servers string) string {
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
