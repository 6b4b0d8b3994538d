package model_test

import (
	"testing"

	"github.com/musterfleet/muster/model"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, servers := range []string{
		"nats://a", "nats://a:4222", "tls://joe:secret@a", "TLS://a:4222", "ws://a", "wss://a/path", "a", "a:4222", "joe:secret@a:4222", "[::1]:4222", "nats://[::1]:4222",
		"nats://a, tls://b , c:4222", " nats://a",
	} {
		if err := model.CheckServerURLs(servers); err != nil {
			t.Errorf("%s: %v", servers, err)
		}
	}
	const use = ": use nats://, tls://, ws:// or wss://"
	const write = " is not a server URL: write nats://host:4222 (percent-encode special characters of a password)"
	for servers, want := range map[string]string{
		"tsl://joe:secret@127.0.0.1:4222": "unknown scheme tsl:// in tsl://127.0.0.1:4222" + use,
		"http://a":                        "unknown scheme http:// in http://a" + use,
		"gopher://a":                      "unknown scheme gopher:// in gopher://a" + use,
		"tls://a,tsl://joe:secret@b":      "unknown scheme tsl:// in tsl://b" + use,
		"nats://":                         `"nats://"` + write,
		"nats://joe:secret@/":             `"nats:///"` + write,
		"joe:se://cret@a":                 `"nats://a"` + write,
		"nats://a:1:2":                    `"nats://a:1:2"` + write,
		"nats://x y":                      `"nats://x y"` + write,
		"nats://a,":                       `"nats://"` + write,
	} {
		if err := model.CheckServerURLs(servers); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", servers, err, want)
		}
	}
}

func TestWithoutCredentials(t *testing.T) {
	t.Parallel()
	if got := model.StripCredentials("nats://joe:s@cret@a:1, token@b,tls://c"); got != "nats://a:1,nats://b,tls://c" {
		t.Error(got)
	}
}
