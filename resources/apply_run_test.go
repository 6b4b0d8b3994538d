package resources_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

// TestChildFailures covers the tables "Child Manifest Failures" and "Child
// Resource Inspection".
func TestChildFailures(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
muster: {resources: [{apply: [child.yaml: {}]}]}
-- child.yaml --
muster:
  resources:
    - file: [$DIR/a: {content: one}, $DIR/b: {content: two}]
    - exec: [/bin/false: {unless: "test -e $DIR/good"}, skipped: {command: /bin/true, control: {if: "false"}}]
`)
	w.wants(w.run(), "file#a changed", "file#b changed", "exec#/bin/false failed", "exec#skipped skipped", "apply#child.yaml failed")
	w.fails("apply#child.yaml", "1 of the 4 resources of the child manifest failed")
	w.logs("level=ERROR", "apply#child.yaml failed")

	w.write("good", "")
	w.write("b", "other")
	w.wants(w.run(), "file#a stable", "file#b changed", "exec#/bin/false stable", "exec#skipped skipped", "apply#child.yaml changed")
	w.logs("level=WARN", "child manifest changed", "resources=4", "changed=1", "skipped=1")
	if status := string(w.txs["apply#child.yaml"].Status); !strings.Contains(status, `"resources":4,"changed":1,"failed":0,"skipped":1`) {
		t.Error(status)
	}
	w.wants(w.run(), "file#a stable", "file#b stable", "exec#/bin/false stable", "exec#skipped skipped", "apply#child.yaml stable")
	w.logs("level=INFO", "apply#child.yaml stable")
}

// TestNoopStrengthening covers both tables of that name, also for a child that
// is read during the run and for one below it.
func TestNoopStrengthening(t *testing.T) {
	for _, c := range []struct {
		parent       bool
		child        any
		noop, warned bool
	}{
		{parent: true, child: false, noop: true, warned: true},
		{parent: true, child: true, noop: true},
		{parent: false, child: true, noop: true},
		{parent: false, child: false},
		// A resource without a noop property gets no warning.
		{parent: true, child: "null", noop: true},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("parent %v, child %v, late %v", c.parent, c.child, late), func(t *testing.T) {
				w := newWorld(t, `
-- root.yaml --
muster:
  resources:
    - file: [$DIR/`+map[bool]string{true: "child.yaml", false: "other"}[late]+`: {source: child.yaml}]
    - apply: [child.yaml: {noop: `+fmt.Sprint(c.child)+`}]
    - file: [$DIR/after: {content: after}]
-- child.yaml --
muster: {resources: [{apply: [grandchild.yaml: {}]}]}
-- grandchild.yaml --
muster: {resources: [{file: [$DIR/a: {content: a}]}]}
-- other --
muster: {resources: [{apply: [grandchild.yaml: {}]}]}
`)
				w.write("other", w.read("child.yaml"))
				w.opts.Env.Scope.Noop = c.parent
				w.run()
				if got := w.txs["file#a"]; got == nil || got.Noop != c.noop || (w.read("a") == "a") == c.noop {
					t.Errorf("%+v, %q", got, w.read("a"))
				}
				if got := w.txs["apply#child.yaml"]; got.Noop != c.noop || !got.Changed {
					t.Errorf("%+v", got)
				}
				if leaked := w.read("after") != "after"; leaked != c.parent {
					t.Errorf("noop of the child leaked: %v", leaked)
				}
				if warned := strings.Contains(w.log.String(), "the parent manifest runs in noop\" resource=apply#child.yaml"); warned != c.warned {
					t.Errorf("warned: %v\n%s", warned, w.log.String())
				}
			})
		}
	}
}

// TestMessagesOfChildren: children print messages before and after their resources, also when read during the
// run. An excluded child, or one that cannot begin, prints none.
func TestMessagesOfChildren(t *testing.T) {
	for _, late := range []bool{false, true} {
		w := newWorld(t, `
-- root.yaml --
muster:
  resources:
    - file: [$DIR/`+map[bool]string{true: "child.yaml", false: "other"}[late]+`: {source: copy}]
    - apply: [child.yaml: {data: {who: you}}, left.yaml: {control: {if: "false"}}]
    - exec: [broken: {command: /bin/false}]
    - apply: [unmet.yaml: {require: [exec#broken]}]
-- child.yaml --
data: {who: none}
muster:
  pre_message: "before ${ Data.who }"
  post_message: after child
  resources: [{file: [$DIR/a: {content: a}]}, {apply: [grandchild.yaml: {}, empty.yaml: {}]}]
-- grandchild.yaml --
muster: {pre_message: before grandchild, post_message: after grandchild, resources: [{file: [$DIR/b: {content: b}, $DIR/c: {content: c}]}]}
-- empty.yaml --
muster: {pre_message: before empty, post_message: after empty, resources: []}
-- left.yaml --
muster: {pre_message: never, post_message: never, resources: [{file: [$DIR/never: {content: x}]}]}
-- unmet.yaml --
muster: {pre_message: never, post_message: never, resources: [{file: [$DIR/never: {content: x}]}]}
`)
		w.write("copy", w.read("child.yaml"))
		w.run()
		var got []string
		for _, found := range regexp.MustCompile(`msg="?((?:before|after|never|file#|apply#)[^"\n]*?)(?: (?:changed|stable|failed|skipped|unmet)[^"\n]*)?"`).FindAllStringSubmatch(w.short(w.log.String()), -1) {
			got = append(got, found[1])
		}
		made := map[bool]string{true: "file#child.yaml", false: "file#other"}[late]
		w.wants(got, made, "before you", "file#a", "before grandchild", "file#b", "file#c", "apply#grandchild.yaml", "after grandchild", "before empty", "apply#empty.yaml", "after empty",
			"apply#child.yaml", "after child", "apply#left.yaml", "file#never", "apply#unmet.yaml")
	}
}

// TestHealthCheckStrengthening is the same for health checks.
func TestHealthCheckStrengthening(t *testing.T) {
	for _, c := range []struct{ parent, child, only bool }{
		{true, false, true}, {true, true, true}, {false, true, true}, {false, false, false},
	} {
		w := newWorld(t, `
-- root.yaml --
muster: {resources: [{apply: [child.yaml: {health_check_only: `+fmt.Sprint(c.child)+`}]}, {file: [$DIR/after: {content: after}]}]}
-- child.yaml --
muster: {resources: [{apply: [grandchild.yaml: {}]}]}
-- grandchild.yaml --
muster: {resources: [{file: [$DIR/a: {content: a}]}]}
`)
		w.opts.Env.Scope.HealthCheckOnly = c.parent
		w.run()
		if got := w.txs["file#a"]; got.HealthCheckOnly != c.only || (w.read("a") == "a") == c.only {
			t.Errorf("%+v: %+v", c, got)
		}
		if leaked := w.read("after") != "after"; leaked != c.parent {
			t.Errorf("%+v: leaked %v", c, leaked)
		}
	}
}

// TestTransitiveTrust covers the table of "Transitive Trust".
func TestTransitiveTrust(t *testing.T) {
	const plain, nests = "{file: [$DIR/a: {content: a}]}", "{apply: [grandchild.yaml: {}]}"
	for _, c := range []struct{ allow, holds, says string }{
		{"", nests, ""},
		{"", plain, ""},
		{"allow_apply: true", nests, ""},
		{"allow_apply: false", nests, "child.yaml:1:31: a manifest that is included with `allow_apply: false` cannot include another (remove it, or allow it with `allow_apply: true` where this manifest is included)"},
		{"allow_apply: false", plain, ""},
		// References into the excluded child are not reported as errors.
		{"allow_apply: false", nests + ", {exec: [x: {command: /bin/true, require: [apply#grandchild.yaml, file#/b, apply#last.yaml]}]}", "child.yaml:1:31: a manifest that is included with `allow_apply: false`"},
		// A restriction also holds for grandchildren, and for resources that control excludes.
		{"allow_apply: true", "{apply: [grandchild.yaml: {allow_apply: false}]}", "grandchild.yaml:1:31: a manifest that is included with `allow_apply: false`"},
		{"allow_apply: false", "{apply: [grandchild.yaml: {control: {if: 'false'}}]}", "child.yaml:1:31: a manifest that is included with `allow_apply: false`"},
	} {
		w := newWorld(t, `
-- root.yaml --
muster: {resources: [{apply: [child.yaml: {`+c.allow+`}]}]}
-- child.yaml --
muster: {resources: [`+c.holds+`]}
-- grandchild.yaml --
muster: {resources: [{apply: [last.yaml: {}]}]}
-- last.yaml --
muster: {resources: [{file: [$DIR/b: {content: b}]}]}
`)
		if c.says == "" {
			if _, err := w.resolve(); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if got := w.problems(); len(got) != 1 || !strings.HasPrefix(got[0], c.says) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestDepth covers "Recursion Depth Limiting": of the child at depth 11 nothing
// runs, whether it is found before the run or during it.
func TestDepth(t *testing.T) {
	var w *world
	at := func(file, text string) string {
		return fmt.Sprintf("%s:1:%d", file, strings.LastIndex(w.read(file), text)+1)
	}
	chain := func(levels int, last string) *world {
		w := newWorld(t, "")
		w.write("root.yaml", "muster: {resources: [{apply: [1.yaml: {}]}]}")
		for level := 1; level < levels; level++ {
			w.write(fmt.Sprint(level, ".yaml"), fmt.Sprintf("muster: {resources: [{file: [$DIR/%d: {content: x}]}, {apply: [%d.yaml: {}]}]}", level, level+1))
		}
		w.write(fmt.Sprint(levels, ".yaml"), "muster: {resources: ["+last+"]}")
		return w
	}
	w = chain(10, "{file: [$DIR/10: {content: x}]}")
	if w.run(); w.read("10") != "x" {
		t.Error("depth 10 is not reached")
	}
	w = chain(11, "{file: [$DIR/11: {content: x}]}")
	path := ": root.yaml -> 1.yaml -> 2.yaml -> 3.yaml -> 4.yaml -> 5.yaml -> 6.yaml -> 7.yaml -> 8.yaml -> 9.yaml -> 10.yaml -> "
	w.wants(w.problems(), at("10.yaml", "11.yaml")+": manifests are nested more than 10 levels deep"+path+"11.yaml (does it include itself?)")
	w.in.MaxDepth = 11
	if w.run(); w.read("11") != "x" {
		t.Error("max_depth 11 is not kept")
	}
	w = chain(10, "{file: [$DIR/late.yaml: {content: 'muster: {resources: [{file: [$DIR/never: {content: x}]}]}'}]}, {apply: [$DIR/late.yaml: {}]}")
	w.wants(w.problems(), at("10.yaml", w.dir)+": manifests are nested more than 10 levels deep"+path+"late.yaml (does it include itself?)")
	w = newWorld(t, "-- root.yaml --\nmuster: {resources: [{apply: [root.yaml: {}]}]}")
	w.wants(w.problems(), "root.yaml:1:31: a manifest includes itself: apply#root.yaml (root.yaml:1:31) -> apply#root.yaml (root.yaml:1:31) (remove one of these resources)")
	w = newWorld(t, "-- root.yaml --\nmuster: {resources: [{apply: [child.yaml: {}]}]}\n-- child.yaml --\nmuster: {resources: [{apply: [root.yaml: {}]}]}")
	w.wants(w.problems(), "root.yaml:1:31: a manifest includes itself: apply#child.yaml (root.yaml:1:31) -> apply#root.yaml (child.yaml:1:31) -> apply#child.yaml (root.yaml:1:31) (remove one of these resources)")
}

// TestData covers "Data Handling": external data wins over data of the resource, which wins over data of the
// child. Siblings and grandchildren do not see it.
func TestData(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
data: {who: parent, only: parent}
muster:
  resources:
    - apply: [child.yaml: {data: {who: resource, given: resource, deep: {b: resource}}}]
    - apply: [sibling.yaml: {}]
    - file: [$DIR/root: {content: "${ Data.who }"}]
-- child.yaml --
data: {who: child, given: child, own: child, deep: {a: child, b: child}}
muster:
  resources:
    - file: [$DIR/child: {content: "${ Data.who } ${ Data.given } ${ Data.own } ${ Data.deep.a } ${ Data.deep.b } ${ lookup('data.only', 'none') }"}]
    - apply: [grandchild.yaml: {data: {given: passed}}]
-- grandchild.yaml --
data: {who: grandchild, given: grandchild}
muster: {resources: [{file: [$DIR/grandchild: {content: "${ Data.who } ${ Data.given }"}]}]}
-- sibling.yaml --
data: {who: sibling, given: sibling}
muster: {resources: [{file: [$DIR/sibling: {content: "${ Data.who } ${ Data.given }"}]}]}
`)
	for _, external := range []bool{false, true} {
		want := map[string]string{"root": "parent", "child": "resource resource child child resource none", "grandchild": "grandchild passed", "sibling": "sibling sibling"}
		if external {
			w.in.Data = map[string]any{"who": "external"}
			want = map[string]string{"root": "external", "child": "external resource child child resource none", "grandchild": "external passed", "sibling": "external sibling"}
		}
		w.run()
		for name, content := range want {
			if got := w.read(name); got != content {
				t.Errorf("external %v: %s: %q, not %q", external, name, got, content)
			}
		}
	}
}

// TestSecretsInData checks that a secret of the parent is a secret in the child.
func TestSecretsInData(t *testing.T) {
	for name, props := range map[string]string{
		"data from outside":  `data: {password: "${ Data.password }", user: web}`,
		"secret":             `data: {password: "${ secret('hunter22') }", user: web}`,
		"sensitive resource": `sensitive: true, data: {password: hunter22}`,
		"outputs":            `data: {password: "${ outputs('exec#ask').stdout }", user: web}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, `
-- root.yaml --
muster:
  resources:
    - exec: [ask: {command: "printf hunter22", sensitive: true}]
    - apply: [child.yaml: {`+props+`}]
-- child.yaml --
data: {user: web}
muster: {resources: [{file: [$DIR/a: {content: "user=web\npassword=${ Data.password }\n"}]}, {exec: [tell: {command: "echo ${ Data.password } >&2; exit 1", provider: shell}]}]}
`)
			if name == "data from outside" {
				w.in.Data = map[string]any{"password": model.NewSecret("hunter22")}
			}
			w.run()
			if got := w.read("a"); got != "user=web\npassword=hunter22\n" {
				t.Errorf("%q\n%s", got, w.log.String())
			}
			if !w.txs["exec#tell"].Failed || w.txs["file#a"].Properties != nil {
				t.Errorf("%+v %+v", w.txs["exec#tell"], w.txs["file#a"])
			}
			for ref, tx := range w.txs {
				if said := fmt.Sprintf("%+v %s %s", tx, tx.Properties, tx.Status); strings.Contains(said, "hunter22") {
					t.Errorf("%s: %s", ref, said)
				}
			}
			if strings.Contains(w.log.String(), "hunter22") {
				t.Error(w.log.String())
			}
		})
	}
}
