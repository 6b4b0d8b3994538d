package edits_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/edits"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/typetest"
)

func blockType() *resource.Type { return edits.Block(edits.Posix{}) }

func TestBlock(t *testing.T) {
	limits := properties{"name": "limits", "path": "/f", "content": "a soft 1\na hard 2\n"}
	with := func(more properties) properties {
		out := properties{}
		for _, from := range []properties{limits, more} {
			for key, value := range from {
				out[key] = value
			}
		}
		return out
	}
	const block = "# BEGIN muster limits\na soft 1\na hard 2\n# END muster limits\n"
	try(t, blockType(), []row{
		{name: "the same", before: "x\n" + block + "y\n", properties: limits, lines: []int{2, 5}},
		{name: "the same, without a final newline", before: "x\n" + block, properties: with(properties{"content": "a soft 1\na hard 2"})},
		{name: "other content", before: "x\n# BEGIN muster limits\na soft 1\n# END muster limits\ny\n", properties: limits, after: "x\n" + block + "y\n", message: "Would have updated the block"},
		{name: "empty content", before: block, properties: with(properties{"content": ""}), after: "# BEGIN muster limits\n# END muster limits\n", message: "Would have updated the block"},
		{name: "one empty line", before: "", properties: with(properties{"content": "\n"}), after: "# BEGIN muster limits\n\n# END muster limits\n", message: "Would have added the block"},
		{name: "added", before: "x\n", properties: limits, after: "x\n" + block, message: "Would have added the block"},
		{name: "added at the start", before: "x\n", properties: with(properties{"at": "start"}), after: block + "x\n", message: "Would have added the block"},
		{name: "added after", before: "x\ny\nz\n", properties: with(properties{"after": "^[xy]"}), after: "x\ny\n" + block + "z\n", message: "Would have added the block"},
		{name: "added before", before: "x\ny\nz\n", properties: with(properties{"before": "^[yz]"}), after: "x\n" + block + "y\nz\n", message: "Would have added the block"},
		{name: "nothing matches after", before: "x\n", properties: with(properties{"after": "^y"}), err: "no line matches `after`"},
		{name: "stays where it is", before: "x\n" + block + "y\n", properties: with(properties{"at": "start"})},
		{name: "no final newline", before: "x", properties: limits, after: "x\n" + block, message: "Would have added the block"},
		{name: "CRLF", before: "x\r\n", properties: with(properties{"content": "a\n"}), after: "x\r\n# BEGIN muster limits\r\na\r\n# END muster limits\r\n", message: "Would have added the block"},
		{name: "CRLF is the same", before: strings.ReplaceAll(block, "\n", "\r\n"), properties: limits},
		{name: "CRLF in the content", before: block, properties: with(properties{"content": "a soft 1\r\na hard 2\r\n"})},
		{name: "a block of Ansible", before: "x\n# BEGIN ANSIBLE MANAGED BLOCK\nold\n# END ANSIBLE MANAGED BLOCK\n", properties: with(properties{"marker": "# {mark} ANSIBLE MANAGED BLOCK"}), after: "x\n# BEGIN ANSIBLE MANAGED BLOCK\na soft 1\na hard 2\n# END ANSIBLE MANAGED BLOCK\n", message: "Would have updated the block"},
		{name: "another marker", before: "", properties: with(properties{"marker": "<!-- {mark} {name} -->", "content": "x"}), after: "<!-- BEGIN limits -->\nx\n<!-- END limits -->\n", message: "Would have added the block"},

		{name: "absent", before: "x\n" + block + "y\n", properties: properties{"name": "limits", "path": "/f", "ensure": "absent"}, after: "x\ny\n", message: "Would have removed the block", lines: []int{2, 5}},
		{name: "absent already", before: "x\n", properties: properties{"name": "limits", "path": "/f", "ensure": "absent"}},

		{name: "BEGIN without END", before: "x\n# BEGIN muster limits\n", properties: limits, err: `the mark "# BEGIN muster limits" on line 2 has no mark "# END muster limits": correct the file by hand`},
		{name: "END without BEGIN", before: "# END muster limits\n", properties: limits, err: `on line 1 has no mark "# BEGIN muster limits"`},
		{name: "END first", before: "# END muster limits\nx\n# BEGIN muster limits\n", properties: limits, err: "on line 1 is before the mark \"# BEGIN muster limits\" on line 3"},
		{name: "BEGIN twice", before: "# BEGIN muster limits\n" + block, properties: limits, err: "is on lines 1 and 2"},
		{name: "END twice", before: block + "# END muster limits\n", properties: limits, err: "is on lines 4 and 5"},
		{name: "absent, BEGIN without END", before: "# BEGIN muster limits\n", properties: properties{"name": "limits", "path": "/f", "ensure": "absent"}, err: "has no mark"},
	})
}

func TestBlockProblems(t *testing.T) {
	tryProblems(t, blockType(), []problem{
		{properties{}, "`content` is required", ""},
		{properties{"content": "a\x00"}, "NUL byte", ""},
		{properties{"content": "a\r\r\nb"}, "line 1 of the content ends with a carriage return", "remove it"},
		{properties{"content": "a", "marker": "# muster"}, "`marker` has no {mark}", "for example"},
		{properties{"content": "a", "marker": "{mark}\nx"}, "a marker is one line", ""},
		{properties{"content": "a", "name": "a\nb", "path": "/f"}, "the name is part of a mark", "set marker"},
		{properties{"content": "a\n# END muster x", "name": "x", "path": "/f"}, "line 2 of the content is a mark", "set another marker"},
		{properties{"content": "a", "after": "(", "at": "x"}, "`after` is no regular expression", ""},
		{properties{"content": "a", "order": "first"}, "must be a whole number", ""},
		{properties{"block": "a"}, "unknown property `block`", "write `content`"},
	})
	got := warnings(t, blockType(), properties{"ensure": "absent", "content": "x", "order": 1, "at": "start"})
	for _, property := range []string{"content", "order", "at"} {
		if !strings.Contains(got, "`"+property+"` has no effect") {
			t.Errorf("no warning about %s in %s", property, got)
		}
	}
}

func TestBlockContract(t *testing.T) {
	p := properties{"content": "a\nb\n"}
	const block = "# BEGIN muster part\na\nb\n# END muster part\n"
	typetest.Run(t, typetest.Config{Type: blockType(), Cases: append(unsuitable(t, p), []typetest.Case{
		{Name: "added", Setup: holding("x\n"), Properties: in(p), Message: "Would have added the block", Check: holds("x\n"+block, 0o640)},
		{Name: "added again", Setup: holding("x\n"), Properties: in(p), Message: "Would have added the block", Drift: renamed("x\n")},
		{Name: "updated", Setup: holding(strings.Replace(block, "b", "c", 1)), Properties: in(p), Message: "Would have updated the block", Drift: rewritten(strings.Replace(block, "b", "d", 1))},
		{Name: "removed", Setup: holding(block), Properties: in(properties{"ensure": "absent"}), Message: "Would have removed the block", Check: holds("", 0o640)},
		{Name: "stable", Setup: holding(block), Properties: in(p)},
		{Name: "created", Properties: created(t, p), Message: "Would have created the file", Check: holds(block, 0o604)},
	}...)})
}

// Blocks that are added at the same place are in the order of `order`, then of their names, also beside blocks
// that are there already and in a call without them.
func TestOrderOfBlocks(t *testing.T) {
	for _, place := range []properties{{}, {"at": "start"}, {"after": "^x"}, {"before": "^y"}} {
		b := newBatch(t)
		b.write("f", "x\ny\n")
		add := func(name string, order int) {
			p := properties{"content": name, "order": order}
			for key, value := range place {
				p[key] = value
			}
			b.add(blockType(), name, p)
		}
		add("d", 50)
		add("b", 20)
		b.succeeds(b.apply())
		add("c", 50)
		add("e", 70)
		add("a", 10)
		b.succeeds(b.apply())
		var names []string
		for _, l := range strings.Split(b.read("f"), "\n") {
			if name, is := strings.CutPrefix(l, "# BEGIN muster "); is {
				names = append(names, name)
			}
		}
		if !slices.Equal(names, []string{"a", "b", "c", "d", "e"}) {
			t.Errorf("%v: %v", place, names)
		}
		b.stable()
	}
}

func TestBlocksThatOverlap(t *testing.T) {
	b := newBatch(t)
	content := "# BEGIN muster a\n1\n# BEGIN muster b\n# END muster a\n2\n# END muster b\n"
	b.write("f", content)
	b.add(blockType(), "a", properties{"content": "x"})
	b.add(blockType(), "b", properties{"content": "y"})
	errs := b.apply()
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "the block overlaps block#b: its mark on line 3 is between line 1 and line 4") ||
		errs[1] == nil || !strings.Contains(errs[1].Error(), "the block overlaps block#a: its mark on line 4") || b.read("f") != content {
		t.Errorf("%v: %q", errs, b.read("f"))
	}
}

// Lines and blocks of one file are applied together, whatever their types.
func TestLinesAndBlocks(t *testing.T) {
	b := newBatch(t)
	b.write("f", "x\n")
	b.add(lineType(), "line", properties{"line": "y"})
	b.add(blockType(), "block", properties{"content": "z"})
	b.add(lineType(), "in the block", properties{"line": "z 1", "match": "^z"})
	errs := b.apply()
	for i, err := range errs {
		if (err != nil) != (i > 0) || i > 0 && !strings.Contains(fmt.Sprint(err), "undo each other") {
			t.Errorf("%d: %v", i, err)
		}
	}
	b.specs = b.specs[:2]
	b.succeeds(b.apply())
	if got := b.read("f"); got != "x\ny\n# BEGIN muster block\nz\n# END muster block\n" {
		t.Errorf("%q", got)
	}
}

// FuzzBlock checks that a block is idempotent, and that it leaves all other lines alone.
func FuzzBlock(f *testing.F) {
	f.Add("a\nb\n", "x\ny\n", "", false)
	f.Add("a\r\n# BEGIN muster n\r\nz\r\n# END muster n", "", "^a", false)
	f.Add("# BEGIN muster n\n# END muster n\n", "\n\n", "", true)
	f.Fuzz(func(t *testing.T, content, block, after string, absent bool) {
		text, err := edits.Parse(content)
		if err != nil {
			return
		}
		spec := &edits.BlockSpec{Content: &block, Where: edits.Where{After: after}}
		spec.Name, spec.Path, spec.Ensure = "n", "/f", "present"
		if absent {
			spec.Ensure = "absent"
		}
		got, valid := editTwice(t, spec, text)
		if !valid {
			return
		}
		others := func(all []string) []string {
			begin, end := slices.Index(all, "# BEGIN muster n"), slices.Index(all, "# END muster n")
			if begin < 0 {
				return all
			}
			return slices.Delete(all, begin, end+1)
		}
		if before, rest := others(lines(content)), others(lines(got.After.String())); !slices.Equal(before, rest) {
			t.Fatalf("%q became %q", content, got.After)
		}
	})
}
