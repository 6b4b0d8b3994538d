package config_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/model"
)

func parse(t *testing.T, text string) config.Config {
	t.Helper()
	c, err := config.Parse("agent.yaml", []byte(text), config.Default("web01.example.net"))
	if err != nil {
		t.Fatal(err)
	}

	return c
}

func TestDefaults(t *testing.T) {
	want := config.Default("web01.example.net")
	if want.Node != "web01_example_net" || want.Interval.Std() != 5*time.Minute || want.StateDir != "/var/lib/muster" || want.Prefix != "muster" ||
		want.OutboxMaxBytes != 64<<20 || want.ShutdownTimeout.Std() != time.Minute || want.Heartbeat.Std() != time.Minute || want.MaxDepth != 10 {
		t.Errorf("the defaults are %+v", want)
	}
	for _, text := range []string{"", "# nothing\n", "---\n# nothing\n", "groups:\nnats:\n"} {
		if got := parse(t, text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q gives %+v", text, got)
		}
	}
	a, b := config.Default("a"), config.Default("a")
	a.Labels["x"] = "y"
	if len(b.Labels) != 0 {
		t.Error("two configurations share a map")
	}
}

func TestExampleConfigIsTheConfiguration(t *testing.T) {
	full := config.Default("web01.example.net")
	full.Groups = []string{"web", "prod"}
	full.Labels = map[string]string{"rack": "b4", "note": "a: b # c", "number": "007"}
	full.NATS = config.NATS{Context: "fleet", Servers: []string{"nats://a", "tls://b:4222"}, Creds: "/etc/creds", NKey: "/n", TLSCA: "/ca", TLSCert: "/c", TLSKey: "/k"}
	full.OutboxMaxBytes, full.ReadAllEvery = 12345678, 0
	full.Metrics.Listen = "unix:/run/muster/metrics.sock"
	for name, c := range map[string]config.Config{"defaults": config.Default("web01.example.net"), "full": full} {
		text, err := config.Example(c)
		if err != nil {
			t.Fatal(err)
		}
		got := parse(t, string(text))
		if !reflect.DeepEqual(got, c) {
			t.Errorf("%s: %+v comes back from\n%s", name, got, text)
		}
		key := false
		for line := range strings.Lines(string(text)) {
			switch trimmed := strings.TrimSpace(line); {
			case strings.HasPrefix(trimmed, "#"):
				key = true
			case trimmed == "":
				key = false
			case !key:
				t.Errorf("%s: %q has no comment above it", name, line)
			}
			if len(line) > 101 {
				t.Errorf("%s: %q is too long", name, line)
			}
		}
	}
}

func TestConfigProblems(t *testing.T) {
	for text, want := range map[string]string{
		"node: a.b":                             "agent.yaml:1:7: \"a.b\" is not a valid node id (write a_b; a dot would let it match keys of other nodes)",
		"node: WEB01.Example.COM":               "agent.yaml:1:7: \"WEB01.Example.COM\" is not a valid node id (write WEB01_Example_COM; a dot would let it match keys of other nodes)",
		"node: a/b.c":                           "agent.yaml:1:7: \"a/b.c\" is not a valid node id (use letters, digits, - and _ only, not beginning with _; a dot would let it match keys of other nodes)",
		"nodee: a":                              "agent.yaml:1:1: unknown key `nodee` (did you mean `node`?)",
		"zzzzzz: a":                             "agent.yaml:1:1: unknown key `zzzzzz`",
		"nats:\n  api_prefix: foo API":          "agent.yaml:2:15: `nats.api_prefix` \"foo API\" is no subject (write it as the server's configuration has it, without a dot at the end: fleet.API)",
		"nats:\n  api_prefix: foo.":             "agent.yaml:2:15: `nats.api_prefix` \"foo.\" is no subject (write it as the server's configuration has it, without a dot at the end: fleet.API)",
		"nats:\n  api_prefix: $JS.>":            "agent.yaml:2:15: `nats.api_prefix` \"$JS.>\" is no subject (write it as the server's configuration has it, without a dot at the end: fleet.API)",
		"nats:\n  server: x":                    "agent.yaml:2:3: unknown key `server` in `nats` (did you mean `servers`?)",
		"nats:\n  password: x":                  "agent.yaml:2:3: unknown key `password` in `nats` (did you mean `password_file`?)",
		"nats:\n  servers: x":                   "agent.yaml:2:12: `nats.servers` must be a list, not a string (write it as a list: [x])",
		"nats:\n  servers: [a, 'tsl://u:p@b']":  "agent.yaml:2:16: unknown scheme tsl:// in tsl://b: use nats://, tls://, ws:// or wss://",
		"nats:\n  servers: ['nats://']":         "agent.yaml:2:13: \"nats://\" is not a server URL: write nats://host:4222",
		"nats: x":                               "agent.yaml:1:7: `nats` must be a mapping, not \"x\"",
		"nats:\n  tlscert: x":                   "`nats.tlscert` and `nats.tlskey` belong together",
		"groups: [web, a b]":                    "agent.yaml:1:15: \"a b\" is not a valid group",
		"groups: [web, all]":                    "agent.yaml:1:15: every node is in the group all (leave it out)",
		"groups: [web, web]":                    "agent.yaml:1:15: the group web is there twice",
		"groups: web":                           "agent.yaml:1:9: `groups` must be a list, not a string (write it as a list: [web])",
		"groups: [[web]]":                       "agent.yaml:1:10: an item of `groups` is a list (make one list, in an expression with concat())",
		"labels: [x]":                           "agent.yaml:1:9: `labels` must be a mapping, not a list",
		"labels: {a: b, a: c}":                  "agent.yaml:1:16: duplicate key `a`, first at agent.yaml:1:10 (keep one of them)",
		"labels: {a: [b]}":                      "agent.yaml:1:13: `labels.a` must be a string, not a list",
		"interval: 5":                           "agent.yaml:1:11: `interval`: invalid duration \"5\", write it with its unit",
		"interval: 1ms":                         "agent.yaml:1:11: `interval` must be from 1s to 720h0m0s, not 1ms",
		"interval: [5m]":                        "agent.yaml:1:11: `interval` must be a string, not a list",
		"shutdown_timeout: 48h":                 "agent.yaml:1:19: `shutdown_timeout` must be from",
		"heartbeat: 1ms":                        "agent.yaml:1:12: `heartbeat` must be from",
		"state_ttl: 1s":                         "agent.yaml:1:12: `state_ttl` must be from",
		"state_ttl: 90s":                        "agent.yaml:1:12: `state_ttl` 1m30s is too short for a heartbeat of 1m0s",
		"state_dir: var/lib":                    "agent.yaml:1:12: \"var/lib\" must be an absolute path",
		"facts_dir: etc":                        "agent.yaml:1:12: \"etc\" must be an absolute path",
		"prefix: Muster":                        "agent.yaml:1:9: \"Muster\" is not a valid prefix",
		"log: {level: verbose}":                 "agent.yaml:1:14: `log.level` cannot be \"verbose\" (one of debug, info, warn, error)",
		"log: {format: xml}":                    "agent.yaml:1:15: `log.format` cannot be \"xml\" (one of text, json)",
		"outbox_max_bytes: 10":                  "agent.yaml:1:19: `outbox_max_bytes` must be at least 1MiB, not 10",
		"outbox_max_bytes: lots":                "agent.yaml:1:19: `outbox_max_bytes`: invalid size \"lots\", write a number of bytes, or one with its unit, for example 500MB or 10GiB",
		"read_file_limit: 0":                    "agent.yaml:1:18: `read_file_limit`: invalid size \"0\", write a number of bytes, or one with its unit, for example 500MB or 10GiB",
		"read_all_every: -1":                    "agent.yaml:1:17: `read_all_every` must not be negative",
		"read_all_every: often":                 "agent.yaml:1:17: `read_all_every` must be a whole number, not \"often\"",
		"max_depth: 0":                          "agent.yaml:1:12: `max_depth` must be at least 1",
		"node: a\nnode: b":                      "agent.yaml:2:1: duplicate key `node`, first at agent.yaml:1:1 (keep one of them)",
		"node: a\nnode: b\nprefixx: c":          "agent.yaml:3:1: unknown key `prefixx`",
		"trust: {threshold: 2}":                 "agent.yaml:1:20: `trust.threshold` is 2, and `trust.keys` has no keys: signatures would not be looked at (add keys, muster trust key new makes one, or leave `trust.threshold` out)",
		"trust: {keys: [{name: a}]}":            "agent.yaml:1:16: `key` is missing: the public part of a signing key (muster trust key ls prints it)",
		"trust: {keys: [{key: x}]}":             "agent.yaml:1:22: `key` of `trust.keys`: not a signing key: \"x\", a public one begins with O and has 56 characters (muster trust key ls prints it)",
		"- node":                                "agent.yaml:1:1: the document must be a mapping, not a list",
		"node: [":                               "agent.yaml:1",
		"node: a\n---\nnode: b":                 "agent.yaml:2:1: a second document begins here (put each document into a separate file)",
		"interval: 1ms\nnodee: a\nmax_depth: 0": "agent.yaml:2:1: unknown key `nodee`",
	} {
		_, err := config.Parse("agent.yaml", []byte(text), config.Default("web01"))
		var problems model.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives\n  %v\nwant\n  %s", text, err, want)
		}
	}
	_, err := config.Parse("agent.yaml", []byte("interval: 1ms\nnodee: a\nmax_depth: 0"), config.Default("web01"))
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 3 || !slices.IsSorted(lines) {
		t.Errorf("not all at once, in the order of the file: %q", lines)
	}
	_, err = config.Parse("agent.yaml", []byte("trust: {keys: [{name: a}, {key: x}]}"), config.Default("web01"))
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 2 || strings.Count(err.Error(), "(muster trust key") != 2 {
		t.Errorf("not one remedy for each key: %q", lines)
	}
	if _, err := config.Parse("agent.yaml", nil, config.Default("bad host")); err == nil || !strings.Contains(err.Error(), "not a valid node id") {
		t.Errorf("a host name that is no id gives %v", err)
	}
}
