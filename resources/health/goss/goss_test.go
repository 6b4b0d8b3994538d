package goss_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/health"
	"github.com/musterfleet/muster/resources/health/goss"
	"github.com/musterfleet/muster/resources/host"
)

// envEvaluate has the test binary evaluate rules as muster does.
const envEvaluate = "EVALUATE_GOSS_RULES"

func TestMain(m *testing.M) {
	if os.Getenv(envEvaluate) != "" {
		os.Exit(goss.Main(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// evaluate runs a check of rules in a child process.
func evaluate(t *testing.T, rules model.GossRules) model.HealthResult {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := engine.NewChecker(host.New(host.Options{}), self)

	return c.CheckAll(t.Context(), []model.HealthCheck{{Name: "goss", Format: model.HealthGoss, GossRules: rules}}, []string{envEvaluate + "=1"})[0]
}

// TestNothingIsLeftBehind has goss give up waiting for a command, which holds a pipe open.
func TestNothingIsLeftBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	writing, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	reading, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	script := "exec 3>" + path + "; sleep 3600; :"
	got := evaluate(t, model.GossRules{"command": {script: {"exit-status": 0, "timeout": 500}}})
	if got.Status != model.HealthCritical || !strings.Contains(got.Output, "timed out (500ms)") {
		t.Errorf("%+v", got)
	}
	if err := writing.Close(); err != nil {
		t.Error(err)
	}
	// It ends when no process can write any longer.
	if _, err := io.Copy(io.Discard, reading); err != nil {
		t.Error(err)
	}
}

// kinds are the kinds of rules with their attributes as goss has them.
func kinds() map[string][]string {
	out := map[string][]string{}
	config := reflect.TypeFor[goss.Rules]()
	for i := range config.NumField() {
		kind, _, _ := strings.Cut(config.Field(i).Tag.Get("json"), ",")
		rule := config.Field(i).Type.Elem().Elem()
		for j := range rule.NumField() {
			key, _, _ := strings.Cut(rule.Field(j).Tag.Get("json"), ",")
			if key != "" && key != "-" {
				out[kind] = append(out[kind], key)
			}
		}
	}

	return out
}

// TestValidatedAsGossHasIt compares the accepted attributes with the attributes of goss.
func TestValidatedAsGossHasIt(t *testing.T) {
	all := kinds()
	if len(all) < 10 {
		t.Fatal(all)
	}
	accepted := func(kind, key string) bool {
		rules := model.GossRules{kind: {"a": {key: true}}}
		problems := health.Validate([]model.HealthCheck{{GossRules: rules}}, "file", false)
		return !strings.Contains(problems.Error(), "is no attribute")
	}
	var words []string
	for _, keys := range all {
		words = append(words, keys...)
	}
	for kind, keys := range all {
		for _, key := range words {
			if want := slices.Contains(keys, key); accepted(kind, key) != want {
				t.Errorf("%s.%s is accepted: %t, goss has it: %t", kind, key, !want, want)
			}
		}
	}
}

func TestEvaluate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "motd")
	if err := os.WriteFile(path, []byte("welcome {{ home }}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(dir, "gone")
	for _, c := range []struct {
		name, rules string
		code        int
		says        string
	}{
		{"all hold", fmt.Sprintf(`{"file": {%q: {"exists": true, "mode": "0644", "contents": ["welcome {{ home }}"]}, %q: {"exists": false}}}`, path, gone), 0, "4 of 4 rules hold\n"},
		{"one does not", fmt.Sprintf(`{"file": {%q: {"exists": true}, %q: {"exists": true}}}`, path, gone), 2, "1 of 2 rules hold; File: " + gone + ": exists: Expected false to equal true\n"},
		{"a command", `{"command": {"echo hi": {"exit-status": 0, "stdout": ["hi"]}}}`, 0, "2 of 2 rules hold\n"},
		{"a command that fails", `{"command": {"exit 3": {"exit-status": 0}}}`, 2, "0 of 1 rules hold; Command: exit 3: exit-status: Expected 3 to be numerically eq 0\n"},
		{"a port", `{"port": {"tcp:1": {"listening": true}}}`, 2, "0 of 1 rules hold; Port: tcp:1: listening: Expected false to equal true\n"},
		{"skipped", fmt.Sprintf(`{"file": {%q: {"exists": true, "skip": true}}}`, gone), 0, "0 of 0 rules hold, 1 skipped\n"},
		{"skipped and held", `{"matching": {"a": {"content": 7, "matches": 7}, "b": {"content": 7, "matches": 8, "skip": true}}}`, 0, "1 of 1 rules hold, 1 skipped\n"},
		{"what follows from nothing", fmt.Sprintf(`{"file": {%q: {"exists": true, "mode": "0644", "owner": "root"}}}`, gone), 2, "0 of 1 rules hold, 2 skipped; File: " + gone + ": exists: Expected false to equal true\n"},
		{"an attribute that is missing", fmt.Sprintf(`{"file": {%q: {"mode": "0644"}}}`, path), 3, "0 of 0 rules hold, 1 skipped, 1 cannot be evaluated; File: " + path + ": exists: Error Syntax Error: Missing required attribute\n"},
		{"a matcher that there is not", `{"matching": {"a": {"content": 7, "matches": {"gte": 3}}}}`, 3, "0 of 0 rules hold, 1 cannot be evaluated; Matching: a: matches: Error Syntax Error: Unknown matcher: gte\n"},
		{"a panic", `{"user": {"root": {"exists": true, "uid": "abc"}}}`, 3, "0 of 0 rules hold, 1 cannot be evaluated; User: root: : Error panic in goss: strconv.Atoi: parsing \"abc\": invalid syntax\n"},
		{"one fails, another cannot be evaluated", `{"matching": {"a": {"content": 7, "matches": 8}, "b": {"content": 7, "matches": {"gte": 3}}}}`, 2, "0 of 1 rules hold, 1 cannot be evaluated; Matching: a: matches: Expected 7 to be numerically eq 8; Matching: b: matches: Error Syntax Error: Unknown matcher: gte\n"},
		{"nobody answers", `{"http": {"http://127.0.0.1:1": {"status": 200}}}`, 2, "0 of 1 rules hold; HTTP: http://127.0.0.1:1: status: Error Get \"http://127.0.0.1:1\": dial tcp 127.0.0.1:1: connect: connection refused\n"},
		{"matching", `{"matching": {"a": {"content": 7, "matches": {"gt": 3}}}}`, 0, "1 of 1 rules hold\n"},
		{"no rules", `{}`, 3, "the rules cannot be evaluated: there are none\n"},
		{"nothing", ``, 3, "the rules cannot be evaluated: EOF\n"},
		{"other files", `{"gossfile": {"a.yaml": {}}}`, 3, "the rules cannot be evaluated: json: unknown field \"gossfile\"\n"},
		{"a kind", `{"fil": {}}`, 3, "the rules cannot be evaluated: json: unknown field \"fil\"\n"},
		{"a rule that is none", `{"file": {"/a": null}}`, 3, "the rules cannot be evaluated: Could not parse resource File:/a\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if code := goss.Main(strings.NewReader(c.rules), &out); code != c.code || out.String() != c.says {
				t.Errorf("got %d and %q\nwant %d and %q", code, out.String(), c.code, c.says)
			}
		})
	}
}

func TestTooMuch(t *testing.T) {
	var out bytes.Buffer
	if code := goss.Main(strings.NewReader(strings.Repeat(" ", 17<<20)), &out); code != 3 || !strings.Contains(out.String(), "larger than") {
		t.Error(code, out.String())
	}
}

// FuzzMatching evaluates rules that look at nothing but themselves.
func FuzzMatching(f *testing.F) {
	for _, seed := range []string{`{"content": 7, "matches": 7}`, `{"content": "a", "matches": {"and": ["/a/", {"have-len": 1}]}}`, `{"content": {"a": 1}, "matches": {"have-key": "a"}}`, `null`, `{"matches": {"semver-constraint": "x"}}`, `{"matches": {"gjson": {"a": 1}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, rule []byte) {
		var out bytes.Buffer
		code := goss.Main(strings.NewReader(`{"matching": {"a": `+string(rule)+`}}`), &out)
		if code != 0 && code != 2 && code != 3 || out.Len() == 0 {
			t.Errorf("%d: %s", code, out.String())
		}
	})
}
