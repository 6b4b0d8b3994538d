package resources_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

// TestLinksBesideAChildThatIsLeftOut: references to resources of an excluded child are valid, other unknown
// ones are not. The contents of an unreadable child are unknown.
func TestLinksBesideAChildThatIsLeftOut(t *testing.T) {
	const out = `{control: {if: "false"}}`
	for name, c := range map[string]struct {
		child, needs, says string
		unread             bool
	}{
		"to nothing":           {"{exec: [x: {command: /bin/true}]}", "exec#nowhere", "`require` names exec#nowhere, which is not declared", false},
		"nearly":               {"{exec: [x: {command: /bin/true}]}", "apply#child.yam", "did you mean `apply#child.yaml`?", false},
		"to a name":            {"{exec: [x: {command: /bin/true}]}", "exec#x", "", false},
		"to an alias":          {"{exec: [x: {command: /bin/true, alias: y}]}", "exec#y", "", false},
		"to what is excluded":  {"{exec: [x: {command: /bin/true, control: {if: 'false'}}]}", "exec#x", "", false},
		"to one not valid":     {"{exec: [x: {comand: /bin/true}]}", "exec#x", "", false},
		"past one not valid":   {"{exec: [x: {comand: /bin/true}]}", "exec#nowhere", "which is not declared", false},
		"further down":         {"{apply: [grandchild.yaml: {}]}", "exec#grand", "", false},
		"twice left out":       {"{apply: [grandchild.yaml: " + out + "]}", "exec#grand", "", false},
		"past further down":    {"{apply: [grandchild.yaml: " + out + "]}", "exec#nowhere", "which is not declared", false},
		"itself":               {"{apply: [child.yaml: " + out + "]}", "exec#x", "", true},
		"one not there":        {"{apply: [not-there.yaml: {}]}", "exec#x", "", true},
		"a name not known":     {"{exec: ['${ Data.none }': {command: /bin/true}]}", "exec#x", "", true},
		"another type":         {"{exec: ['${ Data.none }': {command: /bin/true}]}", "exek#x", "`require` names exek#x, which is not declared", false},
		"a block not known":    {"{exek: [x: {}]}", "exec#x", "", true},
		"one that is not YAML": {"{", "exec#x", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "-- root.yaml --\nmuster: {resources: [{apply: [child.yaml: "+out+"]}, {exec: [own: {command: /bin/true, require: [\""+c.needs+"\"]}]}]}\n"+
				"-- child.yaml --\nmuster: {resources: ["+c.child+"]}\n-- grandchild.yaml --\nmuster: {resources: [{exec: [grand: {command: /bin/true}]}]}\n")
			if c.says != "" {
				if got := w.problems(); len(got) != 1 || !strings.Contains(got[0], c.says) {
					t.Errorf("%q", got)
				}
				return
			}
			resolved, err := w.resolve()
			if err != nil {
				t.Fatal(w.short(err.Error()))
			}
			w.wants(w.runResolved(resolved), "apply#child.yaml skipped", "exec#own changed")
			// References that an unreadable child may satisfy are reported.
			says := "`require` names " + c.needs + ", which no readable manifest declares; it counts as met"
			warned := slices.ContainsFunc(resolved.Warnings, func(p model.Problem) bool { return p.Message == says && p.Pos.Line == 1 })
			if warned != c.unread {
				t.Errorf("warned %v: %v", warned, resolved.Warnings)
			}
		})
	}
	for child, says := range map[string]string{"[exec#left]": "", "[exec#nowhere]": "which is not declared"} {
		w := newWorld(t, "-- root.yaml --\nmuster: {resources: [{apply: [child.yaml: "+out+"]}, {exec: [make: {command: cp late.txt late.yaml, cwd: $DIR}]}, {apply: [late.yaml: {}]}]}\n"+
			"-- child.yaml --\nmuster: {resources: [{exec: [left: {command: /bin/true}]}]}\n-- late.txt --\nmuster: {resources: [{exec: [x: {command: /bin/true, require: "+child+"}]}]}\n")
		w.run()
		if got := w.short(strings.Join(w.txs["apply#late.yaml"].Errors, "")); (got == "") != (says == "") || !strings.Contains(got, says) {
			t.Errorf("%s: %q", child, got)
		}
	}
}
