package engine_test

import (
	"slices"
	"strings"
	"testing"
)

// TestFamily: resources of types of one family are observed and changed in the same calls.
func TestFamily(t *testing.T) {
	for name, c := range map[string]struct{ lines, order, actions []string }{
		"one file": {
			[]string{"line a value=1 file=/f", "block b value=1 file=/f", "line c value=1 file=/f"},
			[]string{"line#a", "block#b", "line#c"},
			[]string{"look at 3", "change 3 together", "set a", "set b", "set c", "look at 3"},
		},
		"another resource between": {
			[]string{"line a value=1 file=/f", "thing x value=1", "block b value=1 file=/f"},
			[]string{"line#a", "block#b", "thing#x"},
			[]string{"look at 2", "change 2 together", "set a", "set b", "look at 2", "set x"},
		},
		"another file between": {
			[]string{"line a value=1 file=/f", "line x value=1 file=/g", "thing y value=1", "block b value=1 file=/f"},
			[]string{"line#a", "block#b", "line#x", "thing#y"},
			[]string{"look at 3", "change 3 together", "set a", "set b", "set x", "look at 3", "set y"},
		},
		"a resource that must be between": {
			[]string{"line a value=1 file=/f", "thing x value=1 require=line#a", "block b value=1 file=/f require=thing#x"},
			[]string{"line#a", "thing#x", "block#b"},
			[]string{"look at 2", "set a", "look at 2", "set x", "set b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run := w.run(w.graph(c.lines...))
			equal(t, w.order, c.order)
			if run.Counts.Changed != len(c.lines) {
				t.Errorf("%+v", run.Counts)
			}
			actions := slices.DeleteFunc(w.m.actions(), func(s string) bool {
				return strings.HasPrefix(s, "look") && !strings.HasPrefix(s, "look at") || s == "look at 1"
			})
			equal(t, actions, c.actions)
			if tx := w.txs["block#b"]; tx.Status == nil || !strings.Contains(string(tx.Status), `"resource_type":"block"`) {
				t.Errorf("the state of the block: %s", tx.Status)
			}
		})
	}
}
