package health_test

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/health"
)

// list decodes the checks of a document.
func list(t testing.TB, text string) ([]model.HealthCheck, model.Problems) {
	t.Helper()
	root, problems := document.Read("m.yaml", []byte(text), 1<<20)
	d := document.Decoder{Problems: problems}
	var out struct {
		HealthChecks []model.HealthCheck `json:"health_checks"`
	}
	d.Document(root, &out)

	return out.HealthChecks, d.Problems
}

// TestChecksThatAreNotValid has a row for each problem of a check (formats.md, "Health checks").
func TestChecksThatAreNotValid(t *testing.T) {
	for _, c := range []struct{ name, checks, property, problem string }{
		{"neither", `[{name: a}]`, "health_checks.0", "a health check needs a `command` or `goss_rules` (for example command: /usr/lib/nagios/plugins/check_load)"},
		{"both", `[{command: a, goss_rules: {file: {/a: {exists: true}}}}]`, "health_checks.0.goss_rules", "a health check has either a `command` or `goss_rules` (make two checks of it)"},
		{"a quote", `[{command: "a 'b"}]`, "health_checks.0.command", "`command` cannot be split into words: Unterminated single-quoted string (close the quote)"},
		{"no words", `[{command: "  "}]`, "health_checks.0.command", "`command` names no program (write the program first)"},
		{"an empty word", `[{command: "'' a"}]`, "health_checks.0.command", "`command` names no program (write the program first)"},
		{"tries", `[{command: a, tries: 0}]`, "health_checks.0.tries", "`tries` must be from 1 to 1000, not 0"},
		{"too many tries", `[{command: a, tries: 1001}]`, "health_checks.0.tries", "`tries` must be from 1 to 1000, not 1001"},
		{"timeout", `[{command: a, timeout: 0s}]`, "health_checks.0.timeout", "`timeout` must be more than 0 (leave it out for the default of 1m0s)"},
		{"the second", `[{command: a}, {command: b, timeout: 0s}]`, "health_checks.1.timeout", "`timeout` must be more than 0 (leave it out for the default of 1m0s)"},
		{"format", `[{command: a, format: xml}]`, "health_checks.0.format", "`format` cannot be \"xml\" (one of nagios, goss)"},
		{"format of a command", `[{command: a, format: goss}]`, "health_checks.0.format", "the format of a command is nagios, not goss (leave it out)"},
		{"format of rules", `[{goss_rules: {file: {/a: {exists: true}}}, format: nagios}]`, "health_checks.0.format", "the format of `goss_rules` is goss, not nagios (leave it out)"},
		{"on_critical", `[{command: a, on_critical: restart}]`, "health_checks.0.on_critical", "`on_critical` cannot be \"restart\" (it can only be refresh)"},
		{"critical_on", `[{command: a, critical_on: "1"}]`, "health_checks.0.critical_on", "`critical_on` cannot be \"1\" (it can only be nonzero)"},
		{"critical_on of rules", `[{goss_rules: {file: {/a: {exists: true}}}, critical_on: nonzero}]`, "health_checks.0.critical_on", "`critical_on` is for a `command`, not for `goss_rules` (remove it)"},
		{"name", `[{command: a, name: "a\nb"}]`, "health_checks.0.name", "the name of a health check is one line of at most 200 bytes"},
		{"a long name", `[{command: a, name: ` + strings.Repeat("a", 201) + `}]`, "health_checks.0.name", "the name of a health check is one line of at most 200 bytes"},
		{"one name twice", `[{command: /a/x}, {command: /b/x -v}]`, "health_checks.1.name", "two health checks are called \"x\" (give each a different `name`)"},
		{"no rules", `[{goss_rules: {}}]`, "health_checks.0.goss_rules", "`goss_rules` has no rules (for example {file: {/etc/motd: {exists: true}}})"},
		{"a kind", `[{goss_rules: {fil: {/a: {exists: true}}}}]`, "health_checks.0.goss_rules.fil", "goss has no rules for `fil` (did you mean `file`?)"},
		{"a kind without rules", `[{goss_rules: {file: {}}}]`, "health_checks.0.goss_rules.file", "`file` has no rules"},
		{"a rule without attributes", `[{goss_rules: {process: {sshd: }}}]`, "health_checks.0.goss_rules.process.sshd", "a rule of `process` needs attributes (one of comm, meta, running, skip, title)"},
		{"an attribute", `[{goss_rules: {file: {/a.b: {exist: true}}}}]`, "health_checks.0.goss_rules.file./a.b.exist", "`exist` is no attribute of a goss rule for `file` (did you mean `exists`?)"},
		{"other files", `[{goss_rules: {gossfile: {a.yaml: {}}}}]`, "health_checks.0.goss_rules.gossfile", "rules of other files are not read (write its rules here)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			checks, problems := list(t, "health_checks: "+c.checks)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			got := health.Validate(checks, "service", true)
			if len(got) != 1 || got[0].Property != c.property || got[0].Error() != c.problem {
				t.Errorf("got %+v\nwant %s: %s", got, c.property, c.problem)
			}
		})
	}
}

// TestRulesThatCannotBeEvaluated covers rules that goss would refuse or panic at, with the reported
// property and value.
func TestRulesThatCannotBeEvaluated(t *testing.T) {
	for _, c := range []struct{ rules, property, problem string }{
		{"file: {/a: {mode: '0644'}}", "file./a", "a rule of `file` needs `exists`"},
		{"file: {/a: {exists: }}", "file./a", "a rule of `file` needs `exists`"},
		{"http: {'https://a': {}}", "http.https://a", "a rule of `http` needs attributes (one of allow-insecure, body, ca-file, cert-file, headers, key-file, meta, method, no-follow-redirects, password, proxy, request-body, request-headers, skip, status, timeout, title, url, username)"},
		{"dns: {a: {timeout: 5}}", "dns.a", "a rule of `dns` needs `resolvable` or `resolveable`"},
		{"service: {a: {name: b}}", "service.a", "a rule of `service` needs `enabled` or `running`"},
		{"command: {a: {timeout: 5}}", "command.a", "a rule of `command` needs `exit-status`"},
		{"file: {/a: {exists: maybe}}", "file./a.exists", "`exists` must be true or false, or a matcher, not \"maybe\""},
		{"port: {22: {listening: 1}}", "port.22.listening", "`listening` must be true or false, or a matcher, not 1"},
		{"file: {/a: {exists: true, contents: ['/(unclosed/']}}", "file./a.contents", "`contents`: \"/(unclosed/\" is no pattern: missing closing )"},
		{"file: {/a: {exists: true, contents: ['!/']}}", "file./a.contents", "`contents`: \"!/\" is no pattern: the expression is empty"},
		{"command: {a: {exit-status: 0, stdout: [{equal: a}]}}", "command.a.stdout", "`stdout`: a list here is one of patterns, which are texts, not a mapping"},
		{"file: {/a: {exists: true, mode: {nosuchmatcher: 3}}}", "file./a.mode", "`mode`: goss has no matcher `nosuchmatcher`"},
		{"file: {/a: {exists: true, size: {ge: 3, le: 4}}}", "file./a.size", "`size`: a matcher is one mapping of one name, not of 2 (write and: [{...}, {...}])"},
		{"file: {/a: {exists: true, size: {}}}", "file./a.size", "`size`: a matcher is one mapping of one name, not of 0 (write and: [{...}, {...}])"},
		{"file: {/a: {exists: true, size: {gt: big}}}", "file./a.size", "`size`: `gt` needs a number, not \"big\""},
		{"file: {/a: {exists: true, owner: {have-prefix: 7}}}", "file./a.owner", "`owner`: `have-prefix` needs a text, not 7"},
		{"file: {/a: {exists: true, owner: {match-regexp: '('}}}", "file./a.owner", "`owner`: \"(\" is no pattern: missing closing )"},
		{"file: {/a: {exists: true, owner: {not: {match-regex: a}}}}", "file./a.owner", "`owner`: goss has no matcher `match-regex` (did you mean `match-regexp`?)"},
		{"user: {a: {exists: true, groups: [{or: a}]}}", "user.a.groups", "`groups`: `or` needs a list, not \"a\""},
		{"matching: {a: {matches: {gjson: [a]}}}", "matching.a.matches", "`matches`: `gjson` needs a mapping, not a list"},
		{"matching: {a: {matches: {gjson: {a: {have-len: x}}}}}", "matching.a.matches", "`matches`: `have-len` needs a number, not \"x\""},
		{"matching: {a: {matches: {contain-element: true}}}", "matching.a.matches", "`matches`: `contain-element` needs a text, a number or a matcher, not true"},
		{"matching: {a: {matches: {have-patterns: a}}}", "matching.a.matches", "`matches`: `have-patterns` needs a list, not \"a\""},
		{"matching: {a: {matches: {have-key: }}}", "matching.a.matches", "`matches`: a matcher is a value or a mapping, not nothing"},
		{"user: {a: {exists: true, uid: abc}}", "user.a.uid", "`uid` must be a number, or a matcher, not \"abc\""},
		{"command: {a: {exit-status: none}}", "command.a.exit-status", "`exit-status` must be a number, or a matcher, not \"none\""},
		{"command: {a: {exit-status: 0, timeout: 5s}}", "command.a.timeout", "`timeout` must be a whole number of milliseconds, not \"5s\""},
		{"command: {a: {exit-status: 0, timeout: -5}}", "command.a.timeout", "`timeout` must be a whole number of milliseconds, not -5"},
		{"command: {a: {exit-status: 0, exec: [a]}}", "command.a.exec", "`exec` must be a text, not a list"},
		{"command: {a: {exit-status: 0, skip: 'yes'}}", "command.a.skip", "`skip` must be true or false, not \"yes\""},
		{"command: {a: {exit-status: 0, meta: x}}", "command.a.meta", "`meta` must be a mapping, not \"x\""},
		{"http: {'https://a': {status: 200, request-headers: [7]}}", "http.https://a.request-headers", "`request-headers` must be a list of texts, not a list"},
		{"http: {'a:80': {status: 200}}", "http.a:80", "\"a:80\" is no URL of `http` (write http://… or https://…)"},
		{"http: {a: {status: 200, url: 'ftp://b'}}", "http.a.url", "\"ftp://b\" is no URL of `http` (write http://… or https://…)"},
		{"port: {'tcp:99999': {listening: true}}", "port.tcp:99999", "\"tcp:99999\" is no port (write tcp:22; tcp6, udp and udp6 are the others)"},
		{"port: {'ssh': {listening: true}}", "port.ssh", "\"ssh\" is no port (write tcp:22; tcp6, udp and udp6 are the others)"},
		{"port: {a: {listening: true, port: 'sctp:22'}}", "port.a.port", "\"sctp:22\" is no port (write tcp:22; tcp6, udp and udp6 are the others)"},
	} {
		checks, problems := list(t, "health_checks: [{goss_rules: {"+c.rules+"}}]")
		if len(problems) > 0 {
			t.Fatal(c.rules, problems)
		}
		got := health.Validate(checks, "service", true)
		if want := "health_checks.0.goss_rules." + c.property; len(got) != 1 || got[0].Property != want || got[0].Error() != c.problem {
			t.Errorf("%s: got %+v\nwant %s: %s", c.rules, got, want, c.problem)
		}
	}
}

func TestRulesThatCanBeEvaluated(t *testing.T) {
	for _, rules := range []string{
		"file: {/a: {exists: 'true', mode: 0644, size: {gt: 0}, contents: [a, '!b', '/^c/', '!/d$/', '\\/e'], owner: {or: [root, {have-prefix: adm}]}, contains: }}",
		"command: {a: {exit-status: '0', stdout: text, stderr: {and: [{contain-substring: a}, {not: {match-regexp: b}}]}, timeout: 500, skip: true, meta: {a: 1}, title: x}}",
		"port: {22: {listening: true}, 'tcp6:22': {listening: {not: false}, ip: ['::']}, a: {listening: false, port: 'udp:53'}}",
		"http: {'HTTPS://a': {status: {or: [200, 204]}, request-headers: ['A: b'], allow-insecure: true}, b: {status: 200, url: 'http://c'}}",
		"dns: {a: {resolveable: true, addrs: {consist-of: [127.0.0.1, {match-regexp: '^10'}]}}}",
		"service: {a: {running: true}, b: {enabled: false}, c: {runlevels: [3]}}",
		"matching: {a: {content: [1, 2], matches: {contain-elements: [1, {gt: 1.5}]}}, b: {content: {}, matches: {gjson: {a: {have-key: {equal: [1]}}}}}}",
		"user: {a: {exists: true, uid: {lt: 1000}, groups: [a, b]}}", "file: {/a: {mode: '0644', skip: true}}",
	} {
		checks, problems := list(t, "health_checks: [{goss_rules: {"+rules+"}}]")
		if got := health.Validate(checks, "service", true); len(problems)+len(got) > 0 {
			t.Errorf("%s: %v %v", rules, problems, got)
		}
	}
}

func TestRefreshOfWhatDoesNothing(t *testing.T) {
	checks, _ := list(t, `health_checks: [{command: a, on_critical: refresh}]`)
	if got := health.Validate(checks, "service", true); len(got) > 0 {
		t.Error(got)
	}
	got := health.Validate(checks, "file", false)
	want := "a refresh does nothing to a file (put the check at the resource to refresh)"
	if len(got) != 1 || got[0].Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestAllProblemsAreTold(t *testing.T) {
	checks, _ := list(t, `health_checks: [{tries: 0, timeout: 0s, on_critical: x}, {command: "'", format: x}]`)
	if got := health.Validate(checks, "service", true); len(got) != 6 {
		t.Errorf("%d problems: %v", len(got), got)
	}
}

func TestNamesAndFormats(t *testing.T) {
	checks, problems := list(t, `
health_checks:
  - command: /usr/lib/plugins/check_http -H localhost
  - {command: check_disk, name: disk}
  - goss_rules: {port: {"tcp:22": {listening: true}}}
`)
	if len(problems) > 0 || len(health.Validate(checks, "file", false)) > 0 {
		t.Fatal(problems, health.Validate(checks, "file", false))
	}
	health.Complete(checks)
	want := []model.HealthCheck{{Name: "check_http", Format: "nagios"}, {Name: "disk", Format: "nagios"}, {Name: "goss", Format: "goss"}}
	for i, c := range checks {
		if c.Name != want[i].Name || c.Format != want[i].Format {
			t.Errorf("%d is %s, %s", i, c.Name, c.Format)
		}
	}
}

// FuzzValidate decodes and validates any input. A valid check has a name and a format.
func FuzzValidate(f *testing.F) {
	for _, seed := range []string{
		`[{command: "check_http -H 'local host'", tries: 3, try_sleep: 2s, timeout: 5s}]`,
		`[{goss_rules: {file: {/etc/motd: {exists: true, mode: "0644", contains: [a, /b/]}}}}]`,
		`[{goss_rules: {http: {"http://localhost:80": {status: 200, headers: [x]}}}, on_critical: refresh}]`,
		`[{goss_rules: {a.b: {c.d: {e.f: }}}}, {}]`, `[{name: "", format: goss}]`, `7`, `[[]]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checks, problems := list(t, "health_checks: "+text)
		if len(problems)+len(health.Validate(checks, "service", true)) > 0 {
			return
		}
		health.Complete(checks)
		for _, c := range checks {
			if c.Name == "" || c.Format == "" || (c.Command == "") == (c.GossRules == nil) {
				t.Errorf("%q gives %+v", text, c)
			}
		}
	})
}
