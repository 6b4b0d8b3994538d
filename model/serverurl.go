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
	if err == nil && !isServerScheme(u.Scheme) && u.Opaque == "" {
		hint := ""
		if meant := suggestScheme(u.Scheme); meant != "" {
			hint = " (did you mean " + meant + "://?)"
		}
		return fmt.Errorf("unknown scheme %s:// in %s: use nats://, tls://, ws:// or wss://%s", u.Scheme, StripCredentials(server), hint)
	}
	if err == nil && u.Hostname() != "" && (strings.Count(u.Host, ":") < 2 || u.Host[0] == '[') {
		return nil
	}

	return fmt.Errorf("%q is not a server URL: write nats://host:4222 (percent-encode special characters of a password)", StripCredentials(server))
}

func isServerScheme(scheme string) bool {
	switch scheme {
	case "nats", "tls", "ws", "wss":
		return true
	default:
		return false
	}
}

// suggestScheme returns the valid scheme that the user probably meant, or an empty string. It knows
// the schemes of other clients and finds misspelled schemes. It never suggests a scheme without TLS
// for a scheme with TLS.
func suggestScheme(scheme string) string {
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
	switch distinctLetters(scheme) {
	case distinctLetters("tls"):
		return "tls"
	case distinctLetters("nats"):
		return "nats"
	case distinctLetters("ws"): // and of wss
		if len(scheme) > len("ws") {
			return "wss"
		}
		return "ws"
	default:
		return ""
	}
}

// distinctLetters returns the sorted letters of a word without duplicates.
func distinctLetters(word string) string {
	return string(slices.Compact(slices.Sorted(slices.Values([]byte(word)))))
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
