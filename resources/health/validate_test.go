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
		{"a quote", `[{command: "a 'b"}]`, "health_checks.0.command", "`command` cannot be split into words: Unterminated single-quoted string (close every quote)"},
		{"no words", `[{command: "  "}]`, "health_checks.0.command", "`command` has no words"},
		{"an empty word", `[{command: "'' a"}]`, "health_checks.0.command", "`command` has no words"},
		{"tries", `[{command: a, tries: 0}]`, "health_checks.0.tries", "`tries` must be from 1 to 1000, not 0"},
		{"too many tries", `[{command: a, tries: 1001}]`, "health_checks.0.tries", "`tries` must be from 1 to 1000, not 1001"},
		{"timeout", `[{command: a, timeout: 0s}]`, "health_checks.0.timeout", "`timeout` must be more than 0 (leave it out for the default of 1m0s)"},
		{"the second", `[{command: a}, {command: b, timeout: 0s}]`, "health_checks.1.timeout", "`timeout` must be more than 0 (leave it out for the default of 1m0s)"},
		{"format", `[{command: a, format: xml}]`, "health_checks.0.format", "`format` cannot be \"xml\" (one of nagios, goss)"},
		{"format of a command", `[{command: a, format: goss}]`, "health_checks.0.format", "the format of a command is nagios, not goss (leave it out)"},
		{"format of rules", `[{goss_rules: {file: {/a: {exists: true}}}, format: nagios}]`, "health_checks.0.format", "the format of `goss_rules` is goss, not nagios (leave it out)"},
		{"on_critical", `[{command: a, on_critical: restart}]`, "health_checks.0.on_critical", "`on_critical` cannot be \"restart\" (it can only be refresh)"},
		{"name", `[{command: a, name: "a\nb"}]`, "health_checks.0.name", "the name of a health check is one line of at most 200 bytes"},
		{"a long name", `[{command: a, name: ` + strings.Repeat("a", 201) + `}]`, "health_checks.0.name", "the name of a health check is one line of at most 200 bytes"},
		{"one name twice", `[{command: /a/x}, {command: /b/x -v}]`, "health_checks.1.name", "two health checks are called \"x\" (give each a `name` of its own)"},
		{"no rules", `[{goss_rules: {}}]`, "health_checks.0.goss_rules", "`goss_rules` has no rules (for example {file: {/etc/motd: {exists: true}}})"},
		{"a kind", `[{goss_rules: {fil: {/a: {exists: true}}}}]`, "health_checks.0.goss_rules.fil", "goss has no rules for `fil` (did you mean `file`?)"},
		{"a kind without rules", `[{goss_rules: {file: {}}}]`, "health_checks.0.goss_rules.file", "`file` has no rules"},
		{"a rule without attributes", `[{goss_rules: {process: {sshd: }}}]`, "health_checks.0.goss_rules.process.sshd", "a rule of `process` needs attributes (one of comm, running, meta, skip, title)"},
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

func TestRefreshOfWhatDoesNothing(t *testing.T) {
	checks, _ := list(t, `health_checks: [{command: a, on_critical: refresh}]`)
	if got := health.Validate(checks, "service", true); len(got) > 0 {
		t.Error(got)
	}
	got := health.Validate(checks, "file", false)
	want := "a refresh does nothing to a file (put the check at the resource that is to be refreshed)"
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

// FuzzValidate decodes and validates what anyone may write; what is valid has a
// name and a format afterwards.
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
