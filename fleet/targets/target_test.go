package targets_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

// web01 is a node for tests.
func web01() targets.Node {
	return targets.Node{
		State: "ok", Reason: "motd: because",
		Node: &model.Node{NodeState: model.NodeState{
			Node: "web01", Host: "web01.example.net", Version: "1.2.0", Groups: []string{"web", "eu"}, Outbox: 3,
			Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Message: "a message", Paused: &model.Paused{},
			Labels: map[string]string{"rack": "a3"}, Clock: model.ClockOffset{Offset: model.Offset(-7 * time.Second)},
		}},
		Manifest: func(name string) targets.Manifest {
			if name != "motd" {
				return targets.Manifest{}
			}

			return targets.Manifest{Status: "up-to-date", Revision: 17, Outcome: "changed"}
		},
	}
}

func facts() model.Facts {
	return model.Facts{
		"host": map[string]any{"info": map[string]any{"platform": "debian"}}, "memory": 4096.0, "text": "text", "production": true,
		"disks": []any{map[string]any{"size": 5.0, "root": true}, map[string]any{"size": 7.0}},
	}
}

func compile(t *testing.T, text string) *targets.Expression {
	t.Helper()
	e, err := targets.Compile(text)
	if err != nil {
		t.Fatal(err)
	}

	return e
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`group("web") && facts.host.info.platform == "debian" && labels.rack == "a3" && state != "unreachable"`: true,
		`node == "web01"`: true, `node in ["web02", "db01"]`: false, `node matches "^web[0-9]+$"`: true, `host endsWith ".net"`: true,
		`version startsWith "1."`: true, `group("all")`: true, `group("db")`: false, `"eu" in groups`: true, `any(groups, # == "eu")`: true,
		`labels.none == ""`: true, `labels["a-b"] == ""`: true, `"rack" in labels`: true, `state == "ok"`: true, `outbox > 2`: true,
		`clock < -5`: true, `abs(clock) > 5`: true, `upper(node) == "WEB01"`: true, `len(groups) == 2`: true, `not group("web")`: false,
		`manifest("motd").status == "up-to-date" && manifest("motd").revision >= 17`: true, `manifest("none").status == ""`: true, `manifest("motd").outcome == "stable"`: false,

		`reason contains "because" && message == "a message" && paused`: true,
		`age(started) > "1h"`: true, `age(started) <= "1ms"`: false, `"1h" < age(started)`: true, `started < "2026-01-03"`: true, `started == "2026-01-02T03:04:05Z"`: true,
		`age(heard) > "1h"`: false, `age(heard) < "1h"`: false, `age(started) > age(heard)`: false,

		`facts.memory / 1024 >= 4`: true, `facts.production`: true, `any(facts.disks, .size > 6)`: true, `any(facts.disks, .root)`: true,
		`facts["host"]["info"].platform contains "deb"`: true, `facts.disks[1].size == 7`: true, `facts.disks | count(.size > 1) == 2`: true, `"host" in facts`: true,

		// A missing value is nil at any part of the path and compares false.
		`facts.none`: false, `facts.none == nil`: true, `facts.none.a.b == "x"`: false, `facts.text.a.b == "x"`: false, `facts.none > 5`: false, `facts.none <= 5`: false,
		`facts.none / 2 > 5`: false, `-facts.none < 5`: false, `abs(facts.none) < 5`: false, `facts.none contains "x"`: false, `facts.none matches "x"`: false,
		`"x" in facts.none`: false, `any(facts.none, .size > 6)`: false, `len(facts.none.list) > 0`: false, `lower(facts.none) == "x"`: false, `facts.disks[9].size > 1`: false,
		`facts.none && true`: false, `facts.none || false`: false, `!facts.none`: true, `facts.none ? true : false`: false, `facts.none ?? false`: false,
	} {
		got, err := compile(t, text).Evaluator().Match(web01(), targets.Documents{Facts: facts()})
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// TestFactsAreNeededWhereTheyDecide: an expression needs facts only if the result depends on them.
func TestFactsAreNeededWhereTheyDecide(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		`group("db") && facts.production`: nil, `group("web") || facts.production`: nil, `group("web") && facts.production`: targets.ErrFactsNeeded,
	} {
		if _, err := compile(t, text).Evaluator().Match(web01(), targets.Documents{}); !errors.Is(err, want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	e := compile(t, `manifest("motd").revision == 3 && node == "x"`)
	if !e.UsesStatus() || !e.UsesOnly("node", "manifest") || e.UsesOnly("node") || compile(t, `facts.state.manifest`).UsesStatus() {
		t.Error("what an expression uses is wrong")
	}
}

// TestFactsOfAnotherForm are an error of the node, not of the expression.
func TestFactsOfAnotherForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`facts.text > 5`: "string > int", `facts.text`: "not true or false", `facts.text && true`: "not true or false", `facts.memory contains "x"`: "a number",
		`any(facts.memory, true)`: "", `any(facts.disks, .size)`: "not true or false",
	} {
		_, err := compile(t, text).Evaluator().Match(web01(), targets.Documents{Facts: facts()})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestErrors show the expression, the place and the remedy.
func TestErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`grop("web")`:                       `target expression ` + "`grop(\"web\")`" + `, column 1: unknown name grop; did you mean ` + "`group`?",
		`group(web)`:                        `column 7: unknown name web; text needs quotes: "web"; the names are node, host,`,
		`state == "ok" && lables.x`:         "column 18: unknown name lables; did you mean `labels`?",
		`repeat("a", 100) == "a"`:           `column 1: unknown name repeat; the functions are group, package, manifest, age, all,`,
		`now() > 1`:                         `unknown name now`,
		`node = "web01"`:                    `column 6: unexpected =; write == to compare`,
		`node =~ "web"`:                     `column 6: unexpected =~; write matches to compare with a pattern, such as node matches "^web"`,
		`group == "web"`:                    `column 1: group is a function; write group("web")`,
		`node == "a" || group=='web'`:       `write group("web")`,
		`groups == "web"`:                   `write group("web")`,
		`manifest == "motd"`:                `column 1: manifest is a function; write group("web"), manifest("motd").status == `,
		`node == "web01" &&`:                `it is not complete`,
		`node`:                              `its result is string, not true or false; compare it`,
		`facts`:                             `its result is a mapping, not true or false`,
		``:                                  `it is empty; write a condition`,
		`manifest("x").foo == ""`:           `a manifest has status, revision and outcome`,
		`state == "failde"`:                 "column 10: state is never `failde`; did you mean `failed`?",
		`"xyzzyx" != state`:                 "state is never `xyzzyx`; it is one of unreadable, stopped, unreachable, paused, failed",
		`state in ["ok", "failde"]`:         "column 17: state is never `failde`",
		`manifest("x").status == "rejectd"`: "did you mean `rejected`?",
		`manifest("x").outcome == "chnged"`: "did you mean `changed`?",
		`labels.rack == 3`:                  `mismatched types string and int`,
		`age(heard) > "1 hour"`:             "column 14: `1 hour` is no duration; write a duration as text",
		`heard > "yesterday"`:               "column 9: `yesterday` is no time; write a time as text",
		`heard > 5`:                         `mismatched types a time and int); write a time as text`,
		`group(5)`:                          `column 7: cannot use int`,
		`node matches "("`:                  `missing closing )`,
		`node matches facts.pattern`:        `the pattern of matches is no literal text; write it in quotes`,
		`any(1..9, true)`:                   `unknown operator ..; the operators are ==`,
		`len(filter(groups, true)) > 0`:     `unknown function filter; the functions are`,
		`facts.list()`:                      `only names can be called`,
		`let x = 1; x == 1`:                 ``,
		`groups[0:1] == []`:                 `slices`,
		`$env.node == "a"`:                  `unknown name $env`,
		`__get(facts, "a")`:                 `unknown name __get`,
		"node ==\n  web01":                  `line 2, column 3: unknown name web01`,
		strings.Repeat(" ", 9000):           `the expression is too long; put the nodes into a group`,
		strings.Repeat("!", 2000) + "true":  `nodes`,
	} {
		_, err := targets.Compile(text)
		if e := (*targets.Error)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("%.50s: %v", text, err)
		}
	}
}

// TestResults: the same language over results of resources.
func TestResults(t *testing.T) {
	t.Parallel()
	r := targets.Result{
		Node: "web01", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Type: "file", Name: "/etc/motd", Resource: "file#/etc/motd", Outcome: "changed", Cause: "drift", Revision: 7,
		Drift: true, Drifted: "mode: 0666", Latency: 2 * time.Second, Error: "one\ntwo", RunID: "r1",
	}
	for text, want := range map[string]bool{
		`drift && latency > "1s"`: true, `latency > "1m"`: false, `latency == "2s"`: true, `type == "service" && outcome == "failed"`: false, `resource endsWith "motd" && revision > 6`: true,
		`time >= "2026-01-02T03:04:05Z"`: true, `time < "2026-01-02T03:04:05Z"`: false, `age(time) > "1h"`: true, `error contains "two"`: true, `any([type, name], # == "file")`: true,
		`cause in ["drift", "schedule"] && !noop`: true, `run_id == "r1" && drifted matches "^mode"`: true,
	} {
		q, err := targets.CompileResults(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, err := q.Evaluator(nil).Match(r); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		`outcome == "faild"`: "query `outcome == \"faild\"`, column 12: outcome is never `faild`; did you mean `failed`?", `cause == "x"`: "cause is never `x`; it is one of manifest, schedule, drift",
		`latncy > "1s"`: "column 1: unknown name latncy; did you mean `latency`?", `latency > 5`: `mismatched types a duration and int); write a duration as text`,
		`latency > "5"`: "`5` is no duration", `labels.rack == "a3"`: "column 1: labels is of nodes, not of results; --on selects nodes by it", `x == "a"`: "unknown name x; text needs quotes: \"x\"; the names are node, time", `group("web")`: "group is of nodes, not of results",
		`facts.a == 1`: "facts is of nodes, not of results", `drift && `: "it is not complete", `Result.node == "a"`: "unknown name Result",
	} {
		_, err := targets.CompileResults(text)
		if e := (*targets.Error)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	done := make(chan struct{})
	close(done)
	q, err := targets.CompileResults(`drift`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Evaluator(done).Match(r); !errors.Is(err, targets.ErrEnded) {
		t.Errorf("ended: %v", err)
	}
}

// TestBounds: the data of a node cannot make its evaluation endless.
func TestBounds(t *testing.T) {
	t.Parallel()
	long := model.Facts{"list": make([]any, 30_000)}
	for _, text := range []string{`any(facts.list, false)`, `all(facts.list, any(facts.list, # == 1))`} {
		if _, err := compile(t, text).Evaluator().Match(web01(), targets.Documents{Facts: long}); !errors.Is(err, targets.ErrTooCostly) {
			t.Errorf("%s: %v", text, err)
		}
	}
	// The evaluator has a new budget for the next node.
	e := compile(t, `any(facts.list, false)`).Evaluator()
	for _, size := range []int{15_000, 30_000, 15_000} {
		_, err := e.Match(web01(), targets.Documents{Facts: model.Facts{"list": make([]any, size)}})
		if (size > 20_000) != errors.Is(err, targets.ErrTooCostly) {
			t.Errorf("%d: %v", size, err)
		}
	}
}

// TestLongTexts tests that an expression cannot read the long texts and lists of a node for each element of a list, by any
// operator or function, and that it can read them once.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("1.", 200_000)
	items, tree := make([]any, 100), map[string]any{}
	for i := range items {
		items[i], tree[fmt.Sprint(i)] = float64(i), strings.Repeat("x", 4000)
	}
	facts := model.Facts{"items": items, "big": big, "same": big, "tree": tree, "copy": maps.Clone(tree), "long": make([]any, 50_000)}
	for _, text := range []string{
		`facts.big matches "^(1|.)*x$"`, `facts.big contains "x"`, `facts.big startsWith facts.same`, `facts.big endsWith facts.same`,
		`facts.big == facts.same`, `facts.big != facts.same`, `facts.big < facts.same`, `facts.big + facts.same == "x"`, `facts.big in [facts.same]`,
		`facts.tree == facts.copy`, `"x" in facts.long`, `len(facts.big) == 1`, `lower(facts.big) == "x"`, `upper(facts.big) == "x"`, `trim(facts.big) == "x"`,
		`message matches "^(1|.)*x$"`, `message contains "x"`, `lower(message) == "x"`, `len(message) == 1`, `upstream(facts.big) == "x"`,
	} {
		node := web01()
		node.Message = big
		if _, err := compile(t, text).Evaluator().Match(node, targets.Documents{Facts: facts}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		each := "count(facts.items, " + text + ") == 7"
		if _, err := compile(t, each).Evaluator().Match(node, targets.Documents{Facts: facts}); !errors.Is(err, targets.ErrTooCostly) {
			t.Errorf("%s: %v", each, err)
		}
	}
	for _, text := range []string{`older(facts.big, "1.2")`, `newer("1.2", facts.big)`, `compare(facts.big, facts.same, "rpm") == 0`} {
		_, err := compile(t, text).Evaluator().Match(web01(), targets.Documents{Facts: facts})
		if err == nil || !strings.Contains(err.Error(), "it has 400000 bytes, more than 256") {
			t.Errorf("%s: %.200v", text, err)
		}
	}
	// Membership in a mapping costs nothing.
	if got, err := compile(t, `count(facts.items, "7" in facts.tree) == 100`).Evaluator().Match(web01(), targets.Documents{Facts: facts}); !got || err != nil {
		t.Errorf("%t, %v", got, err)
	}
}

// FuzzTarget: no expression and no facts end the program.
func FuzzTarget(f *testing.F) {
	for _, text := range []string{
		`group("web") && facts.host.info.platform == "debian" && labels.rack == "a3" && state != "unreachable"`, `any(facts.disks, .size > 6)`,
		`node matches "^web[0-9]+$" ? facts.a?.b : !facts.memory`, `manifest("motd").revision in [1, 17]`, `-facts.memory / 0 < len(facts.text) ?? 1`, `(`, `"`, "`", `facts[facts.text]`,
		`count(groups, # in facts.none) >= abs(clock) * 2`, `all(facts, true)`, `facts.disks | none(.a.b.c)`, `"a" + facts.text == upper(host)`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := targets.Compile(text)
		if err != nil {
			if got := err.Error(); !strings.HasPrefix(got, "target expression ") {
				t.Error(got)
			}
			return
		}
		run := e.Evaluator()
		for _, known := range []model.Facts{nil, {}, facts()} {
			first, err := run.Match(web01(), targets.Documents{Facts: known})
			again, same := run.Match(web01(), targets.Documents{Facts: known})
			if first != again || fmt.Sprint(err) != fmt.Sprint(same) {
				t.Errorf("%s: %v %v, then %v %v", text, first, err, again, same)
			}
		}
	})
}

// BenchmarkMatch evaluates an expression for 10,000 nodes.
func BenchmarkMatch(b *testing.B) {
	e, err := targets.Compile(`group("web") && facts.host.info.platform == "debian" && labels.rack == "a3" && state != "unreachable"`)
	if err != nil {
		b.Fatal(err)
	}
	run, n, known := e.Evaluator(), web01(), facts()
	for b.Loop() {
		for range 10_000 {
			if ok, err := run.Match(n, targets.Documents{Facts: known}); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	}
}
