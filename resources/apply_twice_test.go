package resources_test

import (
	"strings"
	"testing"
)

// vhost is a child manifest with data in its resources.
const vhost = `
-- vhost.yaml --
data: {name: default, port: 80}
muster:
  resources:
    - file: [$DIR/common: {content: x}]
    - file: [{"$DIR/${ Data.name }": {content: "${ Data.port }"}}]
`

// TestChildWithSeveralData includes one manifest several times. Each inclusion is a resource.
func TestChildWithSeveralData(t *testing.T) {
	for name, c := range map[string]struct {
		archive string
		want    []string
	}{
		"in one list": {"-- root.yaml --\nmuster: {resources: [{apply: [{vhost.yaml: {data: {name: a}}}, {vhost.yaml: {data: {name: b}}}, {vhost.yaml: {data: {name: c, port: 8080}}}]}]}",
			[]string{"file#common changed", "file#a changed", "apply#vhost.yaml changed", "file#b changed", "apply#vhost.yaml (2) changed", "file#c changed", "apply#vhost.yaml (3) changed"}},
		"without data and with": {"-- root.yaml --\nmuster: {resources: [{apply: [vhost.yaml: {}]}, {apply: [vhost.yaml: {data: {name: b}}]}]}",
			[]string{"file#common changed", "file#default changed", "apply#vhost.yaml changed", "file#b changed", "apply#vhost.yaml (2) changed"}},
		"equal": {"-- root.yaml --\nmuster: {resources: [{apply: [vhost.yaml: {}]}, {apply: [vhost.yaml: {}]}]}",
			[]string{"file#common changed", "file#default changed", "apply#vhost.yaml changed", "apply#vhost.yaml (2) changed"}},
		"by two children": {"-- root.yaml --\nmuster: {resources: [{apply: [one.yaml: {}, two.yaml: {}, three.yaml: {}]}]}\n-- one.yaml --\nmuster: {resources: [{apply: [vhost.yaml: {data: {name: a}}]}]}\n-- two.yaml --\nmuster: {resources: [{apply: [vhost.yaml: {data: {name: b}}]}]}\n-- three.yaml --\nmuster: {resources: [{apply: [vhost.yaml: {data: {name: a}}]}]}",
			[]string{"file#common changed", "file#a changed", "apply#vhost.yaml changed", "apply#one.yaml changed", "file#b changed", "apply#vhost.yaml (2) changed", "apply#two.yaml changed", "apply#three.yaml changed"}},
		"by one child that is included twice": {"-- root.yaml --\nmuster: {resources: [{apply: [{mid.yaml: {data: {name: a}}}, {mid.yaml: {data: {name: b}}}]}]}\n-- mid.yaml --\nmuster: {resources: [{apply: [vhost.yaml: {data: {name: \"${ Data.name }\"}}]}]}",
			[]string{"file#common changed", "file#a changed", "apply#vhost.yaml changed", "apply#mid.yaml changed", "file#b changed", "apply#vhost.yaml (2) changed", "apply#mid.yaml (2) changed"}},
		"one is left out": {"-- root.yaml --\nmuster: {resources: [{apply: [{vhost.yaml: {data: {name: a}, control: {if: 'false'}}}, {vhost.yaml: {data: {name: b}}}]}]}",
			[]string{"apply#vhost.yaml skipped", "file#common changed", "file#b changed", "apply#vhost.yaml (2) changed"}},
		"by aliases": {"-- root.yaml --\nmuster: {resources: [{apply: [{vhost.yaml: {alias: one, data: {name: a}}}, {vhost.yaml: {alias: two, data: {name: b}, require: [apply#three]}}, {vhost.yaml: {alias: three, data: {name: c}}}]}, {exec: [on: {command: /bin/true, refresh_only: true, subscribe: [apply#two]}]}]}",
			[]string{"file#common changed", "file#a changed", "apply#vhost.yaml changed", "file#c changed", "apply#vhost.yaml (3) changed", "file#b changed", "apply#vhost.yaml (2) changed", "exec#on refreshed"}},
		"data that depend on outputs": {"-- root.yaml --\nmuster: {resources: [{exec: [o: {command: printf z}]}, {apply: [{vhost.yaml: {data: {name: a}}}, {vhost.yaml: {data: {name: \"${ outputs('exec#o').stdout }\"}}}]}]}",
			[]string{"exec#o changed", "file#common changed", "file#a changed", "apply#vhost.yaml changed", "file#z changed", "apply#vhost.yaml (2) changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.archive+vhost)
			w.wants(w.run(), c.want...)
			for _, got := range w.run() {
				if strings.Contains(got, " changed") && !strings.HasPrefix(got, "exec#") {
					t.Errorf("again: %s", got)
				}
			}
		})
	}
}

// TestChildTwiceReadDuringTheRun includes a manifest that two manifests include which are read at their turns.
func TestChildTwiceReadDuringTheRun(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
muster:
  resources:
    - file: [$DIR/one.yaml: {source: from-one}, $DIR/two.yaml: {source: from-two}]
    - apply: [one.yaml: {}, two.yaml: {}]
    - apply: [vhost.yaml: {data: {name: c}}]
-- from-one --
muster: {resources: [{apply: [{vhost.yaml: {data: {name: a}}}, {vhost.yaml: {data: {name: d}}}]}]}
-- from-two --
muster: {resources: [{apply: [vhost.yaml: {data: {name: b}}]}]}
`+vhost)
	resolved, err := w.resolve()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.runResolved(resolved)
		for file, want := range map[string]string{"a": "80", "b": "80", "c": "80", "d": "80"} {
			if got := w.read(file); got != want {
				t.Errorf("%s: %q\n%s", file, got, w.log.String())
			}
		}
		for _, ref := range []string{"apply#vhost.yaml", "apply#vhost.yaml (2)", "apply#vhost.yaml (3)", "apply#vhost.yaml (4)"} {
			if tx, ran := w.txs[ref]; !ran || tx.Failed {
				t.Errorf("%s: %+v", ref, tx)
			}
		}
	}
}

// TestChildTwiceConflicts: a resource that both inclusions declare differently is an error.
func TestChildTwiceConflicts(t *testing.T) {
	w := newWorld(t, "-- root.yaml --\nmuster: {resources: [{apply: [{vhost.yaml: {data: {port: 1}}}, {vhost.yaml: {data: {port: 2}}}]}]}"+vhost)
	if got := w.problems(); len(got) != 1 || !strings.Contains(got[0], "vhost.yaml:5:15: file#default is declared differently by two inclusions of vhost.yaml (make the name depend on the data, or include the manifest once)") {
		t.Errorf("%q", got)
	}
	// An invalid inclusion has one problem.
	w = newWorld(t, "-- root.yaml --\nmuster: {resources: [{apply: [{vhost.yaml: {data: {name: a}}}, {vhost.yaml: {dta: {}}}]}]}"+vhost)
	if got := w.problems(); len(got) != 1 || !strings.Contains(got[0], "unknown property `dta`") {
		t.Errorf("%q", got)
	}
	// A reference to a second alias and one to a number are known, others are not.
	w = newWorld(t, "-- root.yaml --\nmuster: {resources: [{apply: [{vhost.yaml: {data: {name: a}}}, {vhost.yaml: {data: {name: b}}}]}, {file: [$DIR/x: {content: x, require: ['apply#vhost.yaml (2)', 'apply#vhost.yaml (3)']}]}]}"+vhost)
	if got := w.problems(); len(got) != 1 || !strings.Contains(got[0], "`require` names apply#vhost.yaml (3), which is not declared") {
		t.Errorf("%q", got)
	}
	// A manifest that includes itself with other data has no end.
	w = newWorld(t, "-- root.yaml --\nmuster: {resources: [{apply: [vhost.yaml: {}]}]}\n-- vhost.yaml --\ndata: {n: 0}\nmuster: {resources: [{apply: [vhost.yaml: {data: {n: \"${ Data.n + 1 }\"}}]}]}\n")
	if got := w.problems(); len(got) != 1 || !strings.Contains(got[0], "more than 10 levels deep") {
		t.Errorf("%q", got)
	}
}
