package manifest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// TestResources checks the forms of declarations.
func TestResources(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"list": {"    - file:\n        - /a: {mode: 0644}\n        - /b:\n            content: x\n    - package:\n        - vim:\n",
			lines(`file {"name":"/a","ensure":"present","mode":"0644"}`, `file {"name":"/b","ensure":"present","content":"x"}`, `package {"name":"vim","ensure":"present"}`)},
		"single":          {"    - file:\n        mode: 0644\n        name: /a\n        ensure: absent\n", `file {"name":"/a","ensure":"absent","mode":"0644"}`},
		"two types":       {"    - file: [{/a: }]\n      exec: [{b: }]\n", lines(`file {"name":"/a","ensure":"present"}`, `exec {"name":"b","ensure":"present"}`)},
		"names":           {"    - exec:\n        - 0644: {}\n        - 1.10: {}\n        - yes: {}\n        - \"${ 'a' + 'b' }\": {}\n        - x ${ 1 + 1 }: {}\n        - '/usr/bin/myapp --config x':\n        - $${HOME}/bin:\n", lines(`exec {"name":"0644","ensure":"present"}`, `exec {"name":"1.10","ensure":"present"}`, `exec {"name":"yes","ensure":"present"}`, `exec {"name":"ab","ensure":"present"}`, `exec {"name":"x 2","ensure":"present"}`, `exec {"name":"/usr/bin/myapp --config x","ensure":"present"}`, `exec {"name":"${HOME}/bin","ensure":"present"}`)},
		"null is unset":   {"    - file:\n        - /a: {mode: null, content: ~, owner: , ensure: }\n", `file {"name":"/a","ensure":"present"}`},
		"aliases":         {"    - file:\n        - /a: {contents: x}\n", `file {"name":"/a","ensure":"present","content":"x"}`},
		"numbers of data": {"    - file:\n        - /a: {data: {mode: 0644, version: 1.10, n: 5, f: 1.5, hex: 0x10}}\n", `file {"name":"/a","ensure":"present","data":{"f":1.5,"hex":"0x10","mode":"0644","n":5,"version":"1.10"}}`},
		"defaults": {"    - file:\n        - /before:\n        - defaults: {owner: root, mode: 0644, contents: d}\n        - /a: {mode: 0600}\n        - /b: {content: own}\n        - defaults: {owner: bin}\n        - /c:\n    - file:\n        - /d:\n",
			lines(`file {"name":"/before","ensure":"present","content":"d","mode":"0644","owner":"bin"}`, `file {"name":"/a","ensure":"present","content":"d","mode":"0600","owner":"root"}`, `file {"name":"/b","ensure":"present","content":"own","mode":"0644","owner":"root"}`, `file {"name":"/c","ensure":"present","content":"d","mode":"0644","owner":"bin"}`, `file {"name":"/d","ensure":"present"}`)},
		"default unset":        {"    - file:\n        - defaults: {mode: 0644}\n        - /a: {mode: null}\n", `file {"name":"/a","ensure":"present"}`},
		"default expression":   {"    - file:\n        - defaults: {owner: \"${ Facts.os }\"}\n        - /a:\n", `file {"name":"/a","ensure":"present","owner":"debian"}`},
		"default control":      {"    - file:\n        - defaults: {control: {if: 'false'}}\n        - /a:\n", `file {"name":"/a","ensure":"present","control":{"if":"false"}} excluded: control.if is false: false`},
		"no defaults":          {"    - file:\n        - defaults:\n        - /a:\n", `file {"name":"/a","ensure":"present"}`},
		"named defaults":       {"    - exec:\n        name: defaults\n", `exec {"name":"defaults","ensure":"present"}`},
		"empty":                {"    []\n", ""},
		"warning":              {"    - file:\n        - /a:\n            count: 101\n", lines(`file {"name":"/a","ensure":"present","count":101}`, "warning: m.yaml:6:20: a count of 101 is a lot (use less)")},
		"warning of a default": {"    - file:\n        - defaults: {count: 101}\n        - /a:\n", lines(`file {"name":"/a","ensure":"present","count":101}`, "warning: m.yaml:5:29: a count of 101 is a lot (use less)")},
		"no warning":           {"    - file:\n        - /a: {count: 101, control: {if: 'false'}}\n", `file {"name":"/a","ensure":"present","control":{"if":"false"},"count":101} excluded: control.if is false: false`},
		"references":           {"    - file:\n        - /a: {require: [exec#x], subscribe: [\"exec#${ 'y' }\"]}\n    - exec: [{x: }, {y: }]\n", lines(`file {"name":"/a","ensure":"present","require":["exec#x"],"subscribe":["exec#y"]}`, `exec {"name":"x","ensure":"present"}`, `exec {"name":"y","ensure":"present"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(t, "# head\nmuster:\n  resources:\n"+tc.in, options(), manifest.Inputs{}); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestResourceProblems checks the problems of the section.
func TestResourceProblems(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"no section":           {"data: {}\n", "m.yaml:1:1: the document has no `muster` section (add `muster:` with `resources:`)"},
		"both sections":        {"muster: {}\nccm: {}\n", "m.yaml:2:1: `muster` and `ccm` exclude each other (`ccm` is another name of `muster`: keep one of them)"},
		"unknown key":          {"muser: {}\nmuster: {}\n", "m.yaml:1:1: unknown key `muser` (did you mean `muster`?)"},
		"resources at the top": {"data: {}\nresources: []\n", "m.yaml:2:1: unknown key `resources` (put it below `muster:`, indented)"},
		"a key of the section": {"ccm: {}\nfail_on_error: true\n", "m.yaml:2:1: unknown key `fail_on_error` (put it below `muster:`, indented)"},
		"data in the section":  {"muster:\n  data: {}\n  resources: []\n", "m.yaml:2:3: unknown key `data` in `muster` (put it at the top level, beside `muster:`)"},
		"overrides in ccm":     {"ccm:\n  overrides: {}\n  resources: []\n", "m.yaml:2:3: unknown key `overrides` in `ccm` (put it at the top level, beside `ccm:`)"},
		"a type at the top":    {"file:\n  - /etc/x: {}\nmuster: {}\n", "m.yaml:1:1: unknown key `file` (values are below `data:`; the resources of a manifest are items of `resources:` below `muster:`)"},
		"unknown section key":  {"ccm:\n  resource: []\n", "m.yaml:2:3: unknown key `resource` in `ccm` (did you mean `resources`?)"},
		"section":              {"muster: [a]\n", "m.yaml:1:9: `muster` must be a mapping, not a list"},
		"resources":            {"muster: {resources: {file: {}}}\n", "m.yaml:1:21: `resources` must be a list, not a mapping"},
		"a limit":              {"muster: {limit: -1, resources: [{file: [{/a: {limit: -1, ensure: absent}}]}]}\n", lines("m.yaml:1:17: `limit` must not be negative (the most changes a minute, or 0 for any number)", "m.yaml:1:54: `limit` must not be negative (the most changes a minute, or 0 for any number)")},
		"a limit in words":     {"muster: {limit: few}\n", "m.yaml:1:17: `limit` must be a whole number, not \"few\" (the most changes a minute, or 0 for any number)"},
		"a limit and a time":   {"muster: {limit: {changes: 3}}\n", "m.yaml:1:17: `limit` must be a whole number, not a mapping (the most changes a minute, or 0 for any number)"},
		"a registration":       {"muster: {resources: [{file: [{/a: {register_when_stable: [{cluster: a, servise: b, protocol: c, address: d_e, port: 0}]}}]}]}\n", lines("m.yaml:1:59: `service` is required", "m.yaml:1:72: unknown key `servise` in `register_when_stable.0` (did you mean `service`?)", "m.yaml:1:106: `address` must be an IP address or a host name, not \"d_e\"", "m.yaml:1:117: `port` must be from 1 to 65535, not 0")},
		"a secret in it":       {"muster: {resources: [{file: [{/a: {register_when_stable: [{cluster: a, service: b, protocol: c, address: d, port: 1, annotations: {x: \"${ secret('hunter22') }\"}}]}}]}]}\n", "m.yaml:1:58: `register_when_stable` cannot hold a secret, because all of it is published (take the secret out)"},
		"a check":              {"muster: {resources: [{file: [{/a: {health_checks: [{command: a, tris: 1}, {tries: 0}]}}]}]}\n", lines("m.yaml:1:65: unknown key `tris` in `health_checks.0` (did you mean `tries`?)", "m.yaml:1:75: a health check needs a `command` or `goss_rules` (for example command: /usr/lib/nagios/plugins/check_load)", "m.yaml:1:83: `tries` must be from 1 to 1000, not 0")},
		"a check of a file":    {"muster: {resources: [{file: [{/a: {health_checks: [{command: a, on_critical: refresh}]}}]}]}\n", "m.yaml:1:78: a refresh does nothing to a file (put the check at the resource to refresh)"},
		"a goss rule":          {"muster: {resources: [{file: [{/a: {health_checks: [{goss_rules: {file: {/b.c: {exist: true}, /d: }}}]}}]}]}\n", lines("m.yaml:1:80: `exist` is no attribute of a goss rule for `file` (did you mean `exists`?)", "m.yaml:1:94: a rule of `file` needs attributes (one of contains, contents, exists, filetype, gid, group, linked-to, md5, meta, mode, owner, path, sha256, sha512, size, skip, title, uid)")},
		"checks that are none": {"muster: {resources: [{file: [{/a: {health_checks: {command: a}}}]}]}\n", "m.yaml:1:51: `health_checks` must be a list, not a mapping"},
		"a late check":         {"muster: {resources: [{file: [{/a: {health_checks: [{command: \"${ outputs('exec#x').stdout }\"}]}}]}]}\n", lines("m.yaml:1:51: `health_checks` must be known before the run (use outputs in the type's own properties)", "m.yaml:1:63: `outputs` names exec#x, which is not declared")},
		"notify":               {"muster: {resources: [{file: [{/a: {notify: [service#x]}}]}]}\n", "m.yaml:1:36: unknown property `notify` of file (name this resource in `subscribe` of the other one)"},
		"before":               {"muster: {resources: [{file: [{/a: {before: [service#x]}}]}]}\n", "m.yaml:1:36: unknown property `before` of file (name this resource in `require` of the other one)"},
		"a default limit":      {"muster: {resources: [{file: [{defaults: {limit: often}}, {/a: {ensure: absent}}]}]}\n", "m.yaml:1:49: `limit` must be a whole number, not \"often\""},
		"fail_on_error":        {"muster: {fail_on_error: maybe}\n", "m.yaml:1:25: `fail_on_error` must be true or false, not \"maybe\""},
		"fail_on_error list":   {"muster: {fail_on_error: []}\n", "m.yaml:1:25: `fail_on_error` must be true or false, not a list"},
		"flapping":             {"muster: {flapping: sometimes}\n", "m.yaml:1:20: `flapping` must be a mapping, not \"sometimes\" (write off, or {repairs: 5, within: 1m})"},
		"flapping list":        {"muster: {flapping: [1]}\n", "m.yaml:1:20: `flapping` must be a mapping, not a list (write off, or {repairs: 5, within: 1m})"},
		"flapping key":         {"muster: {flapping: {repair: 1}}\n", "m.yaml:1:21: unknown key `repair` in `flapping` (did you mean `repairs`?)"},
		"flapping repairs":     {"muster: {flapping: {repairs: 0}}\n", "m.yaml:1:30: `flapping.repairs` must be a number from 1 to 100 (write `flapping: off` for no limit)"},
		"flapping zero":        {"muster: {flapping: {repairs: 0, within: 0s}}\n", lines("m.yaml:1:30: `flapping.repairs` must be a number from 1 to 100 (write `flapping: off` for no limit)", "m.yaml:1:41: `flapping.within` must be a duration from 1s to 24h (for example 1m)")},
		"flapping within":      {"muster: {flapping: {within: 5}}\n", "m.yaml:1:29: `flapping.within`: invalid duration \"5\", write it with its unit, for example 30s or 5m"},
		"flapping too long":    {"muster: {flapping: {within: 48h}}\n", "m.yaml:1:29: `flapping.within` must be a duration from 1s to 24h (for example 1m)"},
		"message list":         {"muster: {pre_message: [a]}\n", "m.yaml:1:23: `pre_message` must be a string, not a list"},
		"message expression":   {"muster: {post_message: \"a ${ x }\"}\n", "m.yaml:1:27: the expression is not valid: unknown name `x` (write `$${` for a literal `${`)"},
		"message secret":       {"muster: {post_message: \"a ${ secret('x') }\"}\n", "m.yaml:1:24: `post_message` cannot hold a secret, because it is shown"},
		"message late":         {"muster: {post_message: \"a ${ outputs('exec#x') }\"}\n", "m.yaml:1:24: `post_message` must be known before the run"},
		"empty entry":          {"muster: {resources: [{}]}\n", "m.yaml:1:22: an entry of `resources` is empty (write `- file:` with its resources below)"},
		"entry":                {"muster: {resources: [file]}\n", "m.yaml:1:22: an entry of `resources` must be a mapping, not a string (write `- file:` with its resources below)"},
		"unknown type":         {"muster: {resources: [{fiel: []}]}\n", "m.yaml:1:23: unknown resource type `fiel` (did you mean `file`?)"},
		"unknown type far":     {"muster: {resources: [{zookeeper: []}]}\n", "m.yaml:1:23: unknown resource type `zookeeper` (one of file, package, exec)"},
		"block":                {"muster: {resources: [{file: /a}]}\n", "m.yaml:1:29: `file` must be a list of resources, not a string (write `- <name>:` with its properties below)"},
		"empty block":          {"muster: {resources: [{file: }]}\n", "m.yaml:1:29: `file` must be a list of resources, not nothing (write `- <name>:` with its properties below)"},
		"item text":            {"muster: {resources: [{package: [vim]}]}\n", "m.yaml:1:33: an item of `package` must be a mapping of a name to its properties, not a string (write `- vim:` with its properties below, if it has any)"},
		"item list":            {"muster: {resources: [{package: [[vim]]}]}\n", "m.yaml:1:33: an item of `package` must be a mapping of a name to its properties, not a list"},
		"not indented":         {"muster:\n  resources:\n    - file:\n        - /a:\n          mode: 0644\n", "m.yaml:4:11: an item of `file` must hold one name, not 2 keys (indent the properties further than the name)"},
		"name in a list":       {"muster: {resources: [{file: [{name: /a, mode: 0644}]}]}\n", "m.yaml:1:30: an item of `file` must hold one name, not 2 keys (write `- /a:` with its other properties below and indented)"},
		"empty item":           {"muster: {resources: [{file: [{}]}]}\n", "m.yaml:1:30: an item of `file` must hold one name, not 0 keys (write `- <name>:` with its properties below)"},
		"properties":           {"muster: {resources: [{file: [{/a: present}]}]}\n", "m.yaml:1:35: `/a` must be a mapping of properties, not a string (write its properties below the name, as key: value)"},
		"no list":              {"muster:\n  resources:\n    - file:\n        /etc/motd:\n          mode: 0644\n", "m.yaml:4:9: `file` has neither a list of resources nor a name (write it as an item of a list: `- /etc/motd:`)"},
		"no name":              {"muster: {resources: [{file: {mode: 0644}}]}\n", "m.yaml:1:23: the file needs a name (the path)"},
		"empty name":           {"muster: {resources: [{file: [{\"\": {mode: 0644}}]}]}\n", "m.yaml:1:31: the file needs a name (the path)"},
		"name twice":           {"muster: {resources: [{file: [{/a: {name: /b}}]}]}\n", "m.yaml:1:36: `name` is set twice, first at m.yaml:1:31 (keep one of them)"},
		"alias twice":          {"muster: {resources: [{file: [{/a: {content: a, contents: b}}]}]}\n", "m.yaml:1:48: `content` is set twice, first at m.yaml:1:45 (keep one of them)"},
		"unknown property":     {"muster: {resources: [{file: [{/a: {ownr: x}}]}]}\n", "m.yaml:1:36: unknown property `ownr` of file (did you mean `owner`?)"},
		"when":                 {"muster: {resources: [{file: [{/a: {when: x}}]}]}\n", "m.yaml:1:36: unknown property `when` of file (write `control: {if: …}`)"},
		"state":                {"muster: {resources: [{file: [{/a: {state: x}}]}]}\n", "m.yaml:1:36: unknown property `state` of file (write `ensure`)"},
		"path":                 {"muster: {resources: [{file: [{a: {path: /a}}]}]}\n", "m.yaml:1:35: unknown property `path` of file (it is the name of the resource: write `- <path>:` with the properties below)"},
		"dest in a list":       {"muster: {resources: [{file: [{mode: 0644, dest: /a}]}]}\n", "m.yaml:1:30: an item of `file` must hold one name, not 2 keys (write `- /a:` with its other properties below and indented)"},
		"empty ensure":         {"muster: {resources: [{file: [{/a: {ensure: \"\"}}]}]}\n", "m.yaml:1:44: `ensure` is empty (leave it out, or give one of present, absent)"},
		"wrong ensure":         {"muster: {resources: [{file: [{/a: {ensure: gone}}]}]}\n", "m.yaml:1:44: invalid ensure \"gone\" (one of present, absent)"},
		"wrong type":           {"muster: {resources: [{file: [{/a: {force: maybe, count: 1.5, args: x, env: [a]}}]}]}\n", lines("m.yaml:1:43: `force` must be true or false, not \"maybe\"", "m.yaml:1:57: `count` must be a whole number, not \"1.5\"", "m.yaml:1:68: `args` must be a list, not a string (write it as a list: [x])", "m.yaml:1:76: `env` must be a mapping, not a list")},
		"wrong value":          {"muster: {resources: [{file: [{/a: {mode: 9999}}]}]}\n", "m.yaml:1:42: invalid mode \"9999\" (four octal digits)"},
		"default name":         {"muster: {resources: [{file: [defaults: {name: x, alias: y}]}]}\n", lines("m.yaml:1:41: `name` cannot be a default: it belongs to one resource", "m.yaml:1:50: `alias` cannot be a default: it belongs to one resource")},
		"default unknown":      {"muster: {resources: [{file: [defaults: {ownr: x}]}]}\n", "m.yaml:1:41: unknown property `ownr` of file (did you mean `owner`?)"},
		"default wrong, twice": {"muster: {resources: [{file: [defaults: {mode: x}, /a: , /b: ]}]}\n", "m.yaml:1:47: invalid mode \"x\" (four octal digits)"},
		"default failing":      {"muster: {resources: [{file: [defaults: {mode: \"${ x }\"}, /a: , /b: ]}]}\n", "m.yaml:1:48: the expression is not valid: unknown name `x` (write `$${` for a literal `${`)"},
		"name fails":           {"muster: {resources: [{file: [{\"${ x }\": {mode: rw}}]}]}\n", lines("m.yaml:1:32: the expression is not valid: unknown name `x` (write `$${` for a literal `${`)", "m.yaml:1:48: invalid mode \"rw\" (four octal digits)")},
		"name secret":          {"muster: {resources: [{file: [{\"${ secret('x') }\": }]}]}\n", "m.yaml:1:31: `name` cannot be secret (names are shown in logs and reports)"},
		"name late":            {"muster: {resources: [{file: [{\"${ outputs('exec#x') }\": }]}]}\n", "m.yaml:1:31: `name` must be known before the run (take the name from data or facts)"},
		"name list":            {"muster: {resources: [{file: [{\"${ [1] }\": }]}]}\n", "m.yaml:1:31: `name` must be a string, not a list"},
		"failing common":       {"muster: {resources: [{file: [{/a: {require: [\"file#${ x }\"], ensure: \"${ y }\"}}]}]}\n", lines("m.yaml:1:52: the expression is not valid: unknown name `x` (write `$${` for a literal `${`)", "m.yaml:1:71: the expression is not valid: unknown name `y` (write `$${` for a literal `${`)")},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(t, tc.in, options(), manifest.Inputs{}); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestEveryProblem checks that all problems of a document are reported.
func TestEveryProblem(t *testing.T) {
	in := `hierachy: {}
data:
  # @require
  owner:
  x: "${ Facts.cores + 'a' + [] }"
muster:
  pre_mesage: hi
  resources:
    - fil:
        - /x:
    - file:
        - defaults: {mod: 0644}
        - /a:
            mode: rw
            ownr: root
            content: "${ nope }"
            owner: "${ Data.owner.x }"
        - /b: {control: {if: "1"}}
    - exec: run
`
	want := lines(
		"m.yaml:1:1: unknown key `hierachy` (did you mean `hierarchy`?)",
		"m.yaml:5:7: the expression is not valid: invalid operation: + (mismatched types unknown and list) (write `$${` for a literal `${`)",
		"m.yaml:7:3: unknown key `pre_mesage` in `muster` (did you mean `pre_message`?)",
		"m.yaml:9:7: unknown resource type `fil` (did you mean `file`?)",
		"m.yaml:12:22: unknown property `mod` of file (did you mean `mode`?)",
		"m.yaml:14:19: invalid mode \"rw\" (four octal digits)",
		"m.yaml:15:13: unknown property `ownr` of file (did you mean `owner`?)",
		"m.yaml:16:23: the expression is not valid: unknown name `nope` (write `$${` for a literal `${`)",
		"m.yaml:18:30: `control.if` must be true or false, not a number (write a comparison, for example Facts.host.info.os == 'linux')",
		"m.yaml:19:13: `exec` must be a list of resources, not a string (write `- <name>:` with its properties below)")
	got := outcome(t, in, options(), manifest.Inputs{})
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestReferences checks the problems of names and references. Each is reported at the reference,
// together with all other problems.
func TestReferences(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"unknown":            {"    - exec: [{ab: }, {b: {require: [exec#abc]}}]\n", "m.yaml:3:37: `require` names exec#abc, which is not declared (did you mean `exec#ab`?)"},
		"unknown far":        {"    - exec: [{b: {subscribe: [file#/etc/motd]}}]\n", "m.yaml:3:31: `subscribe` names file#/etc/motd, which is not declared"},
		"unknown of default": {"    - exec: [defaults: {require: [exec#x]}, b: , c: ]\n", "m.yaml:3:35: `require` names exec#x, which is not declared (did you mean `exec#c`?)"},
		"itself":             {"    - exec: [{b: {require: [exec#b]}}]\n", "m.yaml:3:29: exec#b waits for itself by `require` (remove the reference)"},
		"itself by alias":    {"    - exec: [{b: {alias: c, subscribe: [exec#c]}}]\n", "m.yaml:3:41: exec#b waits for itself by `subscribe` (remove the reference)"},
		"itself, excluded":   {"    - exec: [{b: {require: [exec#b], control: {if: 'false'}}}]\n", "m.yaml:3:29: exec#b waits for itself by `require` (remove the reference)"},
		"by expression":      {"    - exec: [{b: {require: [\"exec#${ 'b' }\"]}}]\n", "m.yaml:3:29: exec#b waits for itself by `require` (remove the reference)"},
		"cycle":              {"    - exec: [{a: {require: [exec#b]}}, {b: {alias: x, subscribe: [exec#c]}}, {c: {require: [exec#a]}}]\n", "m.yaml:3:15: the resources wait for each other: exec#a (m.yaml:3:15) -> exec#b (m.yaml:3:41) -> exec#c (m.yaml:3:79) -> exec#a (m.yaml:3:15) (remove one of these references)"},
		"cycle by alias":     {"    - exec: [{a: {require: [exec#x]}}, {b: {alias: x, subscribe: [exec#a]}}]\n", "m.yaml:3:15: the resources wait for each other: exec#a (m.yaml:3:15) -> exec#b (m.yaml:3:41) -> exec#a (m.yaml:3:15) (remove one of these references)"},
		"cycle by outputs":   {"    - exec: [{a: {require: [file#/b]}}]\n    - file: [{/b: {content: \"${ outputs('exec#a').stdout }\"}}]\n", "m.yaml:3:15: the resources wait for each other: exec#a (m.yaml:3:15) -> file#/b (m.yaml:4:15) -> exec#a (m.yaml:3:15) (remove one of these references)"},
		"two cycles": {"    - exec: [{a: {require: [exec#b]}}, {b: {require: [exec#a]}}]\n    - exec: [{c: {require: [exec#d]}}, {d: {require: [exec#c]}}]\n",
			lines("m.yaml:3:15: the resources wait for each other: exec#a (m.yaml:3:15) -> exec#b (m.yaml:3:41) -> exec#a (m.yaml:3:15) (remove one of these references)", "m.yaml:4:15: the resources wait for each other: exec#c (m.yaml:4:15) -> exec#d (m.yaml:4:41) -> exec#c (m.yaml:4:15) (remove one of these references)")},
		"twice":       {"    - exec: [{a: }, {a: }]\n", "m.yaml:3:22: exec#a is declared twice, first at m.yaml:3:15 (keep one of them, or give one another name)"},
		"alias taken": {"    - exec: [{a: }, {b: {alias: a}}]\n", "m.yaml:3:22: exec#a is declared twice, first at m.yaml:3:15 (keep one of them, or give one another name)"},
		"own alias":   {"    - exec: [{a: {alias: a, require: [exec#c]}}, {c: }]\n", lines(`exec {"name":"a","ensure":"present","alias":"a","require":["exec#c"]}`, `exec {"name":"c","ensure":"present"}`)},
		"everything": {"    - exec: [{a: {require: [exec#b]}}, {b: {require: [exec#a]}}, {c: {require: [exec#c]}}, {d: {require: [exec#e], ownr: x}}, {a: {mod: 1}}]\n",
			lines("m.yaml:3:15: the resources wait for each other: exec#a (m.yaml:3:15) -> exec#b (m.yaml:3:41) -> exec#a (m.yaml:3:15) (remove one of these references)",
				"m.yaml:3:81: exec#c waits for itself by `require` (remove the reference)",
				"m.yaml:3:107: `require` names exec#e, which is not declared (did you mean `exec#a`?)",
				"m.yaml:3:116: unknown property `ownr` of exec (did you mean `owner`?)",
				"m.yaml:3:128: exec#a is declared twice, first at m.yaml:3:15 (keep one of them, or give one another name)",
				"m.yaml:3:132: unknown property `mod` of exec (did you mean `mode`?)")},
		"with a name that failed": {"    - exec: [{\"${ x }\": }, {b: {require: [exec#b, exec#c]}}]\n",
			lines("m.yaml:3:16: the expression is not valid: unknown name `x` (write `$${` for a literal `${`)", "m.yaml:3:43: exec#b waits for itself by `require` (remove the reference)")},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(t, "muster:\n  resources:\n"+tc.in, options(), manifest.Inputs{}); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestSentinels checks causes with errors.Is.
func TestSentinels(t *testing.T) {
	for in, want := range map[string]error{
		"muster: {resources: [{nope: []}]}":           model.ErrUnknownType,
		"muster: {resources: [{file: {}}]}":           model.ErrResourceNameRequired,
		"muster: {resources: [{file: [/a: {x: 1}]}]}": model.ErrResourceInvalid,
	} {
		if _, err := resolve(t, in, options(), manifest.Inputs{}); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", in, err, want)
		}
	}
}

// TestControl checks conditions: the reason of the exclusion, or the problem with its position.
func TestControl(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"if true":          {"if: Facts.os == 'debian'", ""},
		"if false":         {"if: Facts.os == 'rhel'", "control.if is false: Facts.os == 'rhel'"},
		"unless true":      {"unless: Facts.cores > 2", "control.unless is true: Facts.cores > 2"},
		"unless false":     {"unless: Facts.cores > 20", ""},
		"both":             {"if: 'true', unless: 'true'", "control.unless is true: true"},
		"both false":       {"if: 'false', unless: 'true'", "control.if is false: false"},
		"boolean":          {"if: false", "control.if is false: false"},
		"braces":           {"if: '${ Facts.os == \"x\" }'", "control.if is false: Facts.os == \"x\""},
		"double braces":    {"if: '{{ false }}'", "control.if is false: false"},
		"map of its own":   {"if: '{\"a\": false}.a'", "control.if is false: {\"a\": false}.a"},
		"lookup":           {"if: lookup('data.on')", "control.if is false: lookup('data.on')"},
		"null":             {"if: ", ""},
		"secret":           {"if: secret('a') == 'b'", "control.if is false: secret('a') == 'b'"},
		"not boolean":      {"if: Facts.os", "problem m.yaml:6:44: `control.if` must be true or false, not a string (write a comparison, for example Facts.host.info.os == 'linux')"},
		"nothing":          {"if: Facts.nope", "problem m.yaml:6:44: `control.if` fails: `Facts.nope` is not set (write `Facts.nope ?? nil` where it may be unset)"},
		"fails":            {"unless: Facts.a.b", "problem m.yaml:6:48: `control.unless` fails: `Facts.a` is not set (write `Facts.a?.b` where it may be unset)"},
		"does not compile": {"if: facts.os == 1", "problem m.yaml:6:44: `control.if` is not a valid expression: unknown name `facts` (did you mean `Facts`?)"},
		"unterminated":     {"if: '${ true'", "problem m.yaml:6:44: `control.if` is not a valid expression: unexpected `{`"},
		"late":             {"if: outputs('exec#x').ok", "problem m.yaml:6:44: `control.if` must be known before the run (use a guard of the type, such as `onlyif`)"},
		"unknown key":      {"iff: true", "problem m.yaml:6:40: unknown key `iff` in `control` (did you mean `if`?)"},
		"a list":           {"if: [a]", "problem m.yaml:6:44: `control.if` must be a string, not a list"},
	} {
		t.Run(name, func(t *testing.T) {
			in := "data: {on: false}\nmuster:\n  resources:\n    - exec: [{x: }]\n    - file:\n        - /a: {content: '1', control: {" + tc.in + "}}\n"
			r, err := resolve(t, in, options(), manifest.Inputs{})
			got := ""
			if err != nil {
				got = "problem " + err.Error()
			} else {
				got = r.Resources[1].Excluded
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	in := "muster: {resources: [{file: [/a: {control: bad}]}]}"
	if got, want := outcome(t, in, options(), manifest.Inputs{}), "m.yaml:1:44: `control` must be a mapping, not \"bad\""; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestExcludedMayFail checks that the expressions of an excluded resource may fail.
func TestExcludedMayFail(t *testing.T) {
	in := "muster: {resources: [{file: [/a: {content: \"${ Facts.a.b }\", ensure: \"${ Facts.a.b }\", control: {if: \"Facts.os == 'rhel'\"}}]}]}"
	want := `file {"name":"/a"} excluded: control.if is false: Facts.os == 'rhel'`
	if got := outcome(t, in, options(), manifest.Inputs{}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	in = "muster: {resources: [{file: [\"${ Facts.a.b }\": {control: {if: 'false'}}]}]}"
	want = "m.yaml:1:30: the expression of the name fails (an excluded resource also needs a name)"
	if got := outcome(t, in, options(), manifest.Inputs{}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	in = "muster: {resources: [{file: [/a: {content: \"${ nope }\", control: {if: 'false'}}]}]}"
	want = "m.yaml:1:45: the expression is not valid: unknown name `nope` (write `$${` for a literal `${`)"
	if got := outcome(t, in, options(), manifest.Inputs{}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestFailOnErrorTakesTheBooleansOfProperties checks the booleans of YAML 1.1.
func TestFailOnErrorTakesTheBooleansOfProperties(t *testing.T) {
	for text, want := range map[string]bool{"yes": true, "On": true, "true": true, "no": false, "\"false\"": false} {
		r, err := resolve(t, "muster: {fail_on_error: "+text+"}\n", options(), manifest.Inputs{})
		if err != nil || r.FailOnError != want {
			t.Errorf("%s gives %+v, %v", text, r, err)
		}
	}
}

// TestFlapping checks the setting flapping.
func TestFlapping(t *testing.T) {
	for text, want := range map[string]model.Flapping{
		"":                        model.DefaultFlapping,
		"flapping: off":           {},
		"flapping: false":         {},
		"flapping: {repairs: 3}":  {Repairs: 3, Within: model.DefaultFlapping.Within},
		"flapping: {within: 10m}": {Repairs: 5, Within: model.Duration(10 * time.Minute)},
		"flapping: {repairs: 1, within: \"${ Data.w }\"}": {Repairs: 1, Within: model.Duration(time.Hour)},
	} {
		r := resolved(t, "data: {w: 1h}\nmuster: {"+text+"}\n", manifest.Inputs{})
		if r.Flapping != want {
			t.Errorf("%q is %+v, want %+v", text, r.Flapping, want)
		}
	}
}

// TestLimit checks the limits of changes per minute of manifests and resources, also of child
// manifests.
func TestLimit(t *testing.T) {
	for text, want := range map[string]int{"": 0, "limit: 0": 0, "limit: 30": 30, "limit: \"${ Data.n * 2 }\"": 10} {
		r := resolved(t, "data: {n: 5}\nmuster: {"+text+"}\n", manifest.Inputs{})
		if r.Limit != want {
			t.Errorf("%q is %d, want %d", text, r.Limit, want)
		}
	}
	r := resolved(t, "muster: {resources: [{file: [{defaults: {limit: 3, ensure: absent}}, {/a: {}}, {/b: {limit: 1}}]}]}\n", manifest.Inputs{})
	if a, b := r.Resources[0].Meta().Limit, r.Resources[1].Meta().Limit; a != 3 || b != 1 {
		t.Errorf("the limits are %d and %d, want 3 and 1", a, b)
	}
}

// TestSettings checks the settings beside the resources.
func TestSettings(t *testing.T) {
	r := resolved(t, "data: {a: 1}\nccm: {fail_on_error: \"${ Data.a == 1 }\", pre_message: \"on ${ Facts.os }\", post_message: 5, resources_jet_file: \"\"}\n", manifest.Inputs{})
	if !r.FailOnError || r.PreMessage != "on debian" || r.PostMessage != "5" || r.Data["a"] != 1 || len(r.Resources) != 0 {
		t.Errorf("got %+v", r)
	}
}
