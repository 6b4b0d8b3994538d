package resources_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/apply"
	"github.com/musterfleet/muster/resources/resource"
)

// TestPathResolution covers "Path Resolution": relative paths are beside the manifest that
// names them, at every level, and a sibling finds its own again.
func TestPathResolution(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
muster: {resources: [{apply: [sub/child.yaml: {}]}, {file: [$DIR/root: {source: files/x}]}]}
-- files/x --
root
-- sub/child.yaml --
muster: {resources: [{apply: [deep/grandchild.yaml: {}]}, {file: [$DIR/child: {source: files/x}]}]}
-- sub/files/x --
child
-- sub/deep/grandchild.yaml --
muster: {resources: [{file: [$DIR/grandchild: {source: files/x}, $DIR/read: {content: "${ readFile('files/x') }"}]}]}
-- sub/deep/files/x --
grandchild
`)
	w.run()
	for file, want := range map[string]string{"root": "root\n", "child": "child\n", "grandchild": "grandchild\n", "read": "grandchild\n"} {
		if got := w.read(file); got != want {
			t.Errorf("%s: %q\n%s", file, got, w.log.String())
		}
	}
	w.logs("file#"+w.dir+"/grandchild changed", "manifest=deep/grandchild.yaml")
	if got := w.txs["file#grandchild"].Within; got != (model.Ref{Type: "apply", Name: "deep/grandchild.yaml"}) {
		t.Error(got)
	}
}

// TestOrder runs references across the boundaries of manifests, in both directions.
func TestOrder(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
muster:
  resources:
    - file: [$DIR/needs-child: {content: x, require: ["file#$DIR/child"]}]
    - exec: [on-apply: {command: /bin/true, refresh_only: true, subscribe: [apply#site]}]
    - exec: [on-child: {command: /bin/true, refresh_only: true, subscribe: ["file#$DIR/child"]}]
    - apply: [child.yaml: {alias: site, require: ["file#$DIR/first"]}]
    - file: [$DIR/first: {content: x}, $DIR/config: {content: x}]
-- child.yaml --
muster:
  resources:
    - file: [$DIR/child: {content: x}]
    - exec: [on-root: {command: /bin/true, refresh_only: true, subscribe: ["file#$DIR/config"]}]
`)
	w.wants(w.run(), "file#first changed", "file#child changed", "file#needs-child changed", "exec#on-child refreshed",
		"file#config changed", "exec#on-root refreshed", "apply#child.yaml changed", "exec#on-apply refreshed")
	w.write("child", "drifted")
	w.wants(w.run(), "file#first stable", "file#child changed", "file#needs-child stable", "exec#on-child refreshed",
		"file#config stable", "exec#on-root stable", "apply#child.yaml changed", "exec#on-apply refreshed")
}

// TestRequireOfAnApplyGatesItsChildren also where they are read during the run.
func TestRequireOfAnApplyGatesItsChildren(t *testing.T) {
	const text = `
-- root.yaml --
muster:
  resources:
    - exec: [broken: {command: /bin/false}]
    - apply: [child.yaml: {require: [exec#broken]}]
    - file: [$DIR/on-apply: {content: x, require: [apply#child.yaml]}, $DIR/on-child: {content: x, require: ["file#$DIR/a"]}]
-- child.yaml --
muster: {resources: [{apply: [grandchild.yaml: {}]}]}
-- grandchild.yaml --
muster: {resources: [{file: [$DIR/a: {content: x}]}]}
`
	w := newWorld(t, text)
	w.wants(w.run(), "exec#broken failed", "file#a unmet", "apply#grandchild.yaml unmet", "apply#child.yaml unmet", "file#on-apply unmet", "file#on-child unmet")

	w = newWorld(t, strings.Replace(text, "command: /bin/false", "command: \"cp $DIR/child.yaml $DIR/brought.yaml; false\", provider: shell", 1))
	w.write("root.yaml", strings.ReplaceAll(w.read("root.yaml"), "[child.yaml", "[brought.yaml"))
	w.write("root.yaml", strings.ReplaceAll(w.read("root.yaml"), "apply#child.yaml", "apply#brought.yaml"))
	w.wants(w.run(), "exec#broken failed", "apply#brought.yaml unmet", "file#on-apply unmet", "file#on-child unmet")
}

// A child fails if a requirement of one of its resources is missing.
func TestUnmetChild(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
muster: {resources: [{exec: [broken: {command: /bin/false}]}, {apply: [child.yaml: {}]}, {file: [$DIR/b: {content: x, require: [apply#child.yaml]}]}]}
-- child.yaml --
muster: {resources: [{file: [$DIR/a: {content: x, require: [exec#broken]}]}]}
`)
	w.wants(w.run(), "exec#broken failed", "file#a unmet", "apply#child.yaml failed", "file#b unmet")
	w.fails("apply#child.yaml", "1 of the 1 resources of the child manifest have unmet requirements")
}

// TestControl leaves a child out with all it declares, and meets what requires any of that.
func TestControl(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
muster:
  resources:
    - apply: [child.yaml: {control: {if: "false"}}, not-there.yaml: {control: {if: "false"}}]
    - file: [$DIR/b: {content: x, require: ["file#$DIR/a"]}, $DIR/c: {content: x, require: [apply#child.yaml]}]
-- child.yaml --
muster: {resources: [{file: [$DIR/a: {content: x}]}]}
`)
	w.wants(w.run(), "apply#child.yaml skipped", "apply#not-there.yaml skipped", "file#b changed", "file#c changed")
}

// TestFailOnError stops only the child where that says it, and at the apply where the root does.
func TestFailOnError(t *testing.T) {
	const text = `
-- root.yaml --
muster:
  fail_on_error: ROOT
  resources: [{apply: [child.yaml: {}]}, {file: [$DIR/root: {content: x}]}]
-- child.yaml --
muster:
  fail_on_error: CHILD
  resources: [{exec: [broken: {command: /bin/false}]}, {apply: [grandchild.yaml: {}]}, {file: [$DIR/child: {content: x}]}]
-- grandchild.yaml --
muster: {resources: [{file: [$DIR/grandchild: {content: x}]}]}
`
	for _, c := range []struct{ root, child, inChild, inRoot string }{
		{"false", "false", "changed", "changed"},
		{"false", "true", "notrun", "changed"},
		{"true", "false", "changed", "notrun"},
		{"true", "true", "notrun", "notrun"},
	} {
		w := newWorld(t, strings.NewReplacer("ROOT", c.root, "CHILD", c.child).Replace(text))
		w.wants(w.run(), "exec#broken failed", "file#grandchild "+c.inChild, "apply#grandchild.yaml "+c.inChild, "file#child "+c.inChild, "apply#child.yaml failed", "file#root "+c.inRoot)
	}
}

// TestRetry: the retries of an apply apply to those of its resources that set none.
func TestRetry(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
muster: {resources: [{apply: [child.yaml: {retry: 2, drift: report, timeout: 1m}]}, {exec: [own: {command: "echo x >> $DIR/own; false", provider: shell}]}]}
-- child.yaml --
muster:
  resources:
    - exec:
        - inherits: {command: "echo x >> $DIR/inherits; false", provider: shell}
        - says: {command: "echo x >> $DIR/says; false", provider: shell, retry: 1, drift: ignore}
`)
	w.run()
	for file, want := range map[string]string{"inherits": "x\nx\nx\n", "says": "x\nx\n", "own": "x\n"} {
		if got := w.read(file); got != want {
			t.Errorf("%s: %q", file, got)
		}
	}
	w.opts.Cause = model.CauseSchedule
	w.wants(w.run(), "exec#inherits noop", "exec#says skipped", "apply#child.yaml stable", "exec#own failed")
}

// TestOutputs reach across the boundaries in both directions.
func TestOutputs(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
muster:
  resources:
    - exec: [parent: {command: printf parent}]
    - apply: [child.yaml: {}]
    - file: [$DIR/root: {content: "${ outputs('exec#c').stdout }"}]
-- child.yaml --
muster:
  resources:
    - file: [$DIR/child: {content: "${ outputs('exec#parent').stdout }"}]
    - exec: [child: {command: printf child, alias: c}]
`)
	w.run()
	if w.read("root") != "child" || w.read("child") != "parent" {
		t.Errorf("%q %q\n%s", w.read("root"), w.read("child"), w.log.String())
	}
}

// TestSameResource covers "apply: twice the same resource": identical is one, different is an
// error that names both places.
func TestSameResource(t *testing.T) {
	const same = "{file: [$DIR/a: {content: x}]}"
	text := func(root, a, b string) string {
		return "-- root.yaml --\nmuster: {resources: [" + root + "]}\n-- a.yaml --\nmuster: {resources: [" + a + "]}\n-- sub/b.yaml --\nmuster: {resources: [" + b + "]}\n"
	}
	for name, c := range map[string]struct {
		archive string
		want    []string
	}{
		"two children":             {text("{apply: [a.yaml: {}, sub/b.yaml: {}]}", same, same), []string{"file#a changed", "apply#a.yaml changed", "apply#sub/b.yaml changed"}},
		"the second waits":         {text("{apply: [a.yaml: {}, sub/b.yaml: {require: [apply#a.yaml]}]}", same, same), []string{"file#a changed", "apply#a.yaml changed", "apply#sub/b.yaml changed"}},
		"parent first":             {text(same+", {apply: [a.yaml: {}]}", same, ""), []string{"file#a changed", "apply#a.yaml changed"}},
		"parent last":              {text("{apply: [a.yaml: {}]}, "+same, same, ""), []string{"file#a changed", "apply#a.yaml changed"}},
		"the apply requires it":    {text(same+", {apply: [a.yaml: {require: ['file#$DIR/a']}]}", same, ""), []string{"file#a changed", "apply#a.yaml changed"}},
		"one child of two parents": {text("{apply: [a.yaml: {}, sub/b.yaml: {}]}", "{apply: [$DIR/c.yaml: {}]}", "{apply: [$DIR/c.yaml: {}]}") + "-- c.yaml --\nmuster: {resources: [{exec: [o: {command: printf x}]}, {file: [$DIR/a: {content: \"${ outputs('exec#o').stdout }\"}]}]}\n", []string{"exec#o changed", "file#a changed", "apply#c.yaml changed", "apply#a.yaml changed", "apply#sub/b.yaml changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.archive)
			w.wants(w.run(), c.want...)
		})
	}
	for name, archive := range map[string]string{
		"content":       text("{apply: [a.yaml: {}, sub/b.yaml: {}]}", same, "{file: [$DIR/a: {content: y}]}"),
		"noop":          text("{apply: [a.yaml: {}, sub/b.yaml: {noop: true}]}", same, same),
		"beside itself": text("{apply: [a.yaml: {}, sub/b.yaml: {}]}", "{file: [$DIR/a: {source: x}]}", "{file: [$DIR/a: {source: x}]}"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, archive)
			if got := w.problems(); len(got) != 1 || !strings.Contains(got[0], "sub/b.yaml:1:30: file#a is declared twice, first at a.yaml:1:30") {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestProblems of all manifests are reported at once, each with its place.
func TestProblems(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
muster:
  resources:
    - apply:
        - child.yaml: {dta: {}}
        - wrong.yaml: {}
        - missing.yaml: {}
        - broken.yaml: {}
        - packed.yaml: {}
        - dir: {}
        - data.yaml: {}
        - https://example.com/x: {}
        - "-": {}
        - a/../b: {}
        - sub/child.yaml: {ensure: absent}
    - exec: [x: {command: /bin/true, require: [exec#nowhere]}]
-- wrong.yaml --
muster:
  resources:
    - file: [$DIR/a: {content: x, mood: "0644"}]
    - apply: [missing.yaml: {}]
-- broken.yaml --
muster: [
-- data.yaml --
data: {}
-- dir/x --
`)
	w.write("packed.yaml", "\x1f\x8b\x08")
	got := strings.Join(w.problems(), "\n")
	for _, want := range []string{
		"root.yaml:4:24: unknown property `dta` of apply (did you mean `data`?)",
		"root.yaml:6:11: cannot include missing.yaml: open missing.yaml: no such file or directory (a relative path is relative to the manifest that names it)",
		"root.yaml:8:11: cannot include packed.yaml: it is packed (unpack it beside this manifest)",
		"root.yaml:9:11: cannot include dir: it is a directory (write dir/manifest.yaml)",
		"root.yaml:11:11: a child manifest is a file, not a URL",
		"root.yaml:12:11: a child manifest cannot be read from standard input",
		"root.yaml:13:11: the path must be clean",
		`root.yaml:14:36: invalid ensure "absent" (one of present)`,
		"wrong.yaml:3:",
		"unknown property `mood` of file",
		"wrong.yaml:4:15: cannot include missing.yaml",
		"broken.yaml:",
		"data.yaml:1:1: the document has no `muster` section",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	// What a child that cannot be read may declare is not reported as missing.
	if strings.Contains(got, "nowhere") {
		t.Error(got)
	}
}

// TestLinksAcross finds references to nothing, and cycles through what includes.
func TestLinksAcross(t *testing.T) {
	for name, c := range map[string]struct{ root, child, says string }{
		"to nothing": {"{apply: [child.yaml: {}]}", "{exec: [x: {command: /bin/true, require: [exec#nowhere]}]}", "child.yaml:1:64: `require` names exec#nowhere, which is not declared"},
		"child waits for its apply": {
			"{apply: [child.yaml: {}]}", "{exec: [x: {command: /bin/true, require: [apply#child.yaml]}]}",
			"the resources wait for each other: ",
		},
		"apply waits for its child": {
			"{apply: [child.yaml: {require: [exec#x]}]}", "{exec: [x: {command: /bin/true}]}",
			"the resources wait for each other: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "-- root.yaml --\nmuster: {resources: ["+c.root+"]}\n-- child.yaml --\nmuster: {resources: ["+c.child+"]}\n")
			if got := w.problems(); len(got) != 1 || !strings.Contains(got[0], c.says) {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestLinksToNothingWithAChildReadLate: a reference that no manifest can meet is found before
// the run, any other at the turn of what includes the child that might.
func TestLinksToNothingWithAChildReadLate(t *testing.T) {
	const root = `muster: {resources: [{file: [$DIR/child.yaml: {content: "muster: {resources: [{file: [$DIR/a: {ensure: absent}]}]}"}]}, {apply: [child.yaml: {}]}, `
	for property, reference := range map[string]string{"require": "[exek#nowhere]", "subscribe": "[exek#nowhere]", "content": "\"${ outputs('exek#nowhere').stdout }\""} {
		w := newWorld(t, "-- root.yaml --\n"+root+"{file: [$DIR/b: {content: x, "+property+": "+reference+"}]}]}\n")
		if property == "content" {
			w = newWorld(t, "-- root.yaml --\n"+root+"{file: [$DIR/b: {content: "+reference+"}]}]}\n")
		}
		if got := w.problems(); len(got) != 1 || !strings.Contains(got[0], "names exek#nowhere, which is not declared") {
			t.Errorf("%s: %q", property, got)
		}
	}
	w := newWorld(t, "-- root.yaml --\n"+root+"{exec: [b: {command: /bin/true, require: [exec#nowhere]}]}]}\n")
	w.wants(w.run(), "file#child.yaml changed", "apply#child.yaml failed", "exec#b unmet")
	if got := w.short(strings.Join(w.txs["apply#child.yaml"].Errors, "")); !strings.Contains(got, "root.yaml:1:") || !strings.Contains(got, "`require` names exec#nowhere, which is not declared") {
		t.Error(got)
	}
}

// A manifest that came from a bucket has no directory.
func TestBareManifest(t *testing.T) {
	w := newWorld(t, "-- root.yaml --\nmuster: {resources: [{apply: [child.yaml: {}]}]}\n-- child.yaml --\nmuster: {resources: [{file: [$DIR/a: {content: x}]}]}\n")
	w.in.Dir = ""
	w.wants(w.problems(), "root.yaml:1:31: cannot include child.yaml: the path is relative, and this manifest has no directory (make a bundle of the manifest and its files, or give an absolute path)")
	w.write("root.yaml", "muster: {resources: [{apply: [$DIR/child.yaml: {}]}]}")
	w.wants(w.run(), "file#a changed", "apply#child.yaml changed")
}

// TestReadDuringTheRun has children that resources of the same run bring.
func TestReadDuringTheRun(t *testing.T) {
	const child = `"muster: {resources: [{file: [$DIR/a: {ensure: absent}]}, {exec: [late: {command: /bin/true, refresh_only: true, subscribe: ['file#$DIR/a', 'file#$DIR/other']}]}]}"`
	for name, root := range map[string]string{
		"a file":                `{file: [$DIR/child.yaml: {content: ` + child + `}]}, {apply: [child.yaml: {}]}, {file: [$DIR/other: {content: x}]}`,
		"a file declared later": `{apply: [child.yaml: {}]}, {file: [$DIR/child.yaml: {content: ` + child + `}]}, {file: [$DIR/other: {content: x}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "-- a --\nthere\n-- root.yaml --\nmuster: {resources: ["+root+"]}\n")
			noop := newWorld(t, "-- a --\nthere\n-- root.yaml --\nmuster: {resources: ["+root+"]}\n")
			noop.opts.Env.Scope.Noop = true
			noop.wants(noop.run(), "file#child.yaml noop", "apply#child.yaml skipped", "file#other noop")
			if got := noop.short(noop.txs["apply#child.yaml"].SkipReason); got != "unknown until file#child.yaml is applied" {
				t.Error(got)
			}
			w.wants(w.run(), "file#child.yaml changed", "file#a changed", "file#other changed", "exec#late refreshed", "apply#child.yaml changed")
			w.wants(w.run(), "file#child.yaml stable", "file#a stable", "file#other stable", "exec#late stable", "apply#child.yaml stable")
			// The current child is not the future one.
			w.write("root.yaml", strings.Replace(w.read("root.yaml"), "ensure: absent", "ensure: present", 1))
			w.opts.Env.Scope.Noop = true
			w.wants(w.run(), "file#child.yaml noop", "apply#child.yaml skipped", "file#other stable")
		})
	}
	t.Run("a command", func(t *testing.T) {
		w := newWorld(t, "-- from --\nmuster: {resources: [{file: [$DIR/a: {content: x}]}]}\n-- root.yaml --\nmuster: {resources: [{exec: [cp $DIR/from $DIR/child.yaml: {creates: $DIR/child.yaml}]}, {apply: [child.yaml: {}]}]}\n")
		w.opts.Env.Scope.Noop = true
		w.run()
		if got := w.short(w.txs["apply#child.yaml"].SkipReason); got != "unknown until exec#cp from child.yaml is applied" {
			t.Errorf("%q %+v", got, w.txs["apply#child.yaml"])
		}
		w.opts.Env.Scope.Noop = false
		w.run()
		if w.read("a") != "x" {
			t.Error(w.log.String())
		}
	})
}

// TestGraphRunsAgain reads a child again in each run of the same graph, with all that includes.
func TestGraphRunsAgain(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
muster: {resources: [{file: [$DIR/child.yaml: {source: from}]}, {apply: [child.yaml: {}]}]}
-- from --
muster: {resources: [{apply: [grandchild.yaml: {}]}]}
-- grandchild.yaml --
muster: {resources: [{file: [$DIR/a: {content: x}]}]}
`)
	resolved, err := w.resolve()
	if err != nil {
		t.Fatal(err)
	}
	w.wants(w.runResolved(resolved), "file#child.yaml changed", "file#a changed", "apply#grandchild.yaml changed", "apply#child.yaml changed")
	w.wants(w.runResolved(resolved), "file#child.yaml stable", "file#a stable", "apply#grandchild.yaml stable", "apply#child.yaml stable")
}

// TestWrongWhenReadDuringTheRun runs no resource of an invalid child.
func TestWrongWhenReadDuringTheRun(t *testing.T) {
	for name, c := range map[string]struct{ child, says string }{
		"a property":     {"{file: [$DIR/a: {content: x}, $DIR/b: {mood: x}]}", "child.yaml:1:"},
		"a reference":    {"{file: [$DIR/a: {content: x, require: [exec#nowhere]}]}", "names exec#nowhere, which is not declared"},
		"another one":    {"{file: [$DIR/a: {content: x}, $DIR/child.yaml: {content: y}]}", "file#child.yaml is declared twice"},
		"itself":         {"{file: [$DIR/a: {content: x}]}, {apply: [child.yaml: {}]}", "a manifest includes itself: apply#child.yaml"},
		"not a manifest": {"", "child.yaml:1:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			text := "muster: {resources: [" + c.child + "]}"
			if c.child == "" {
				text = "["
			}
			w := newWorld(t, "-- root.yaml --\nmuster: {resources: [{file: [$DIR/child.yaml: {source: from}]}, {apply: [child.yaml: {}]}, {file: [$DIR/after: {content: x}, $DIR/needs: {content: x, require: ['file#$DIR/a']}]}]}\n")
			w.write("from", text)
			w.wants(w.run(), "file#child.yaml changed", "apply#child.yaml failed", "file#after changed", "file#needs unmet")
			w.fails("apply#child.yaml", c.says)
			if w.read("a") != "" {
				t.Error("a resource of it ran")
			}
		})
	}
	w := newWorld(t, "-- root.yaml --\nmuster: {resources: [{exec: ['true': {}]}, {apply: [child.yaml: {}]}]}\n")
	w.run()
	w.fails("apply#child.yaml", "cannot include child.yaml: open child.yaml: no such file or directory")
}

// TestOwedRefreshes survive a run that ends between a child's change and what subscribes.
func TestOwedRefreshes(t *testing.T) {
	for name, late := range map[string]bool{"read before the run": false, "read during the run": true} {
		t.Run(name, func(t *testing.T) {
			brings := map[bool]string{true: "child.yaml", false: "other"}[late]
			w := newWorld(t, `
-- root.yaml --
muster:
  resources:
    - file: [$DIR/`+brings+`: {source: from}]
    - apply: [child.yaml: {}]
    - exec: [on-apply: {command: "echo x >> $DIR/refreshed", provider: shell, refresh_only: true, subscribe: [apply#child.yaml]}]
-- from --
muster:
  resources:
    - file: [$DIR/a: {content: x}]
    - exec: [on-child: {command: "echo x >> $DIR/refreshed-child; test -e $DIR/good", provider: shell, refresh_only: true, subscribe: ["file#$DIR/a"]}]
`)
			if !late {
				w.write("child.yaml", w.read("from"))
			}
			w.wants(w.run(), "file#"+brings+" changed", "file#a changed", "exec#on-child failed", "apply#child.yaml failed", "exec#on-apply stable")
			w.write("good", "")
			w.wants(w.run(), "file#"+brings+" stable", "file#a stable", "exec#on-child refreshed", "apply#child.yaml changed", "exec#on-apply refreshed")
			w.wants(w.run(), "file#"+brings+" stable", "file#a stable", "exec#on-child stable", "apply#child.yaml stable", "exec#on-apply stable")
			if got := w.read("refreshed"); got != "x\n" {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestOwedBeforeTheChildChanges: a stop right after the child's change must not lose the
// refresh of what subscribes to the apply, nor may a child that was not read forget its own.
func TestOwedBeforeTheChildChanges(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
muster:
  resources:
    - file: [$DIR/child.yaml: {source: from}]
    - apply: [child.yaml: {}]
    - exec: [on-apply: {command: /bin/true, refresh_only: true, subscribe: [apply#child.yaml]}]
-- from --
muster:
  resources:
    - file: [$DIR/a: {content: x}]
    - exec: [on-child: {command: /bin/true, refresh_only: true, subscribe: ["file#$DIR/a"]}]
`)
	stop := w.stoppable()
	w.opts.Admit = func([]*resource.Resource) error { return nil }
	journal := &stopping{Journal: w.opts.Journal, after: "exec#on-child", stop: stop}
	w.opts.Journal = journal
	w.wants(w.run(), "file#child.yaml changed", "file#a changed", "exec#on-child notrun", "apply#child.yaml notrun", "exec#on-apply notrun")
	w.ctx = nil
	w.opts.Admit = func([]*resource.Resource) error { return errors.New("not admitted") }
	w.wants(w.run(), "file#child.yaml stable", "apply#child.yaml failed", "exec#on-apply stable")
	w.fails("apply#child.yaml", "not admitted")
	w.opts.Admit = nil
	w.wants(w.run(), "file#child.yaml stable", "file#a stable", "exec#on-child refreshed", "apply#child.yaml changed", "exec#on-apply refreshed")
	owed, err := journal.Pending()
	if err != nil || len(owed) > 0 {
		t.Error(owed, err)
	}
}

// TestDamagedJournal also refreshes subscribers that are found during the run.
func TestDamagedJournal(t *testing.T) {
	w := newWorld(t, "-- root.yaml --\nmuster: {resources: [{file: [$DIR/child.yaml: {source: from}]}, {apply: [child.yaml: {}]}]}\n-- from --\nmuster: {resources: [{file: [$DIR/a: {content: x}]}, {exec: [on-child: {command: /bin/true, refresh_only: true, subscribe: ['file#$DIR/a']}]}]}\n")
	w.run()
	if err := w.opts.Journal.Add(t.Context(), model.Ref{Type: "exec", Name: "x"}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(w.dir, "state", "owed", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.wants(w.run(), "file#child.yaml stable", "file#a stable", "exec#on-child refreshed", "apply#child.yaml changed")
}

// TestNoopOfUnknown has an apply unknown where its child is.
func TestNoopOfUnknown(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
muster:
  resources:
    - apply: [child.yaml: {}]
    - exec: [on-apply: {command: /bin/true, refresh_only: true, subscribe: [apply#child.yaml]}]
    - file: [$DIR/first: {content: x}]
-- child.yaml --
muster: {resources: [{exec: [guarded: {command: /bin/true, onlyif: "test -e $DIR/first", require: ["file#$DIR/first"]}]}]}
`)
	w.opts.Env.Scope.Noop = true
	w.wants(w.run(), "file#first noop", "exec#guarded skipped", "apply#child.yaml skipped", "exec#on-apply skipped")
	if got := w.short(w.txs["apply#child.yaml"].SkipReason); got != "unknown until file#first is applied" {
		t.Error(got)
	}
}

// TestNoopOfReferencesIntoTheUnread: references to resources of an unread manifest are valid and count as
// met.
func TestNoopOfReferencesIntoTheUnread(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
muster:
  resources:
    - file: [$DIR/late.yaml: {content: "muster: {resources: [{exec: [made: {command: /bin/true}]}]}"}]
    - apply: [late.yaml: {}]
    - exec: [after: {command: /bin/true, require: [exec#made]}, told: {command: /bin/true, refresh_only: true, subscribe: [exec#made]}]
`)
	w.opts.Env.Scope.Noop = true
	w.wants(w.run(), "file#late.yaml noop", "apply#late.yaml skipped", "exec#after skipped", "exec#told skipped")
	for _, ref := range []string{"exec#after", "exec#told"} {
		if got := w.short(w.txs[ref].SkipReason); got != "unknown until file#late.yaml is applied" {
			t.Errorf("%s: %s", ref, got)
		}
	}
	w.opts.Env.Scope.Noop = false
	w.wants(w.run(), "file#late.yaml changed", "exec#made changed", "apply#late.yaml changed", "exec#after changed", "exec#told refreshed")
}

// TestValidate covers what a name may be.
func TestValidate(t *testing.T) {
	for name, says := range map[string]string{
		"child.yaml": "", "/etc/child.yaml": "", "a b/c.yaml": "",
		"./a.yaml": "write it as a.yaml", "a//b": "write it as a/b", "a\x00b": "NUL", "kv://b/k": "not a URL", "-": "standard input",
	} {
		s := &apply.Spec{Common: model.Common{Name: name}}
		problems := s.Validate()
		if (says == "") != (len(problems) == 0) || (says != "" && !strings.Contains(problems.Error(), says)) {
			t.Errorf("%q: %v", name, problems)
		}
	}
}
