package resource_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// parse parses the links of lines such as "a=alias b c": a resource, its alias and its requirements.
func parse(lines ...string) []resource.Links {
	var out []resource.Links
	for i, line := range lines {
		words := strings.Fields(line)
		name, alias, _ := strings.Cut(words[0], "=")
		l := resource.Links{Ref: model.Ref{Type: "t", Name: name}, Alias: alias, Pos: model.Position{File: "f", Line: i + 1}}
		for _, need := range words[1:] {
			l.Needs = append(l.Needs, resource.Reference{Ref: model.Ref{Type: "t", Name: need}, Property: "require", Pos: l.Pos})
		}
		out = append(out, l)
	}

	return out
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		in   []string
		want string
	}{
		"none":                {nil, ""},
		"sound":               {[]string{"a b c", "b d", "c d", "d"}, ""},
		"known elsewhere":     {[]string{"a earlier"}, ""},
		"alias of its own":    {[]string{"a=a", "b a"}, ""},
		"nothing":             {[]string{"a zzzzzz"}, "f:1: `require` names t#zzzzzz, which is not declared"},
		"nearly":              {[]string{"abc", "b abd"}, "f:2: `require` names t#abd, which is not declared (did you mean `t#abc`?)"},
		"nearly itself":       {[]string{"abc abd"}, "f:1: `require` names t#abd, which is not declared"},
		"nearly, also itself": {[]string{"abcd abce", "abxx"}, "f:1: `require` names t#abce, which is not declared (did you mean `t#abxx`?)"},
		"itself":              {[]string{"a=x a x"}, "f:1: t#a waits for itself by `require` (remove the reference)\nf:1: t#a waits for itself by `require` (remove the reference)"},
		"name twice":          {[]string{"a", "b", "a"}, "f:3: t#a is declared twice, first at f:1 (keep one of them, or give one another name)"},
		"alias twice":         {[]string{"a=x", "b=x"}, "f:2: t#x is declared twice, first at f:1 (keep one of them, or give one another name)"},
		"alias is a name":     {[]string{"a=b", "b"}, "f:2: t#b is declared twice, first at f:1 (keep one of them, or give one another name)"},
		"behind a cycle":      {[]string{"d c", "a c", "b a", "c b"}, "f:4: the resources wait for each other: t#c (f:4) -> t#b (f:3) -> t#a (f:2) -> t#c (f:4) (remove one of these references)"},
		"one tangle":          {[]string{"a b c", "b a c", "c a b"}, "f:1: the resources wait for each other: t#a (f:1) -> t#b (f:2) -> t#a (f:1) (remove one of these references)"},
		"two cycles":          {[]string{"a b", "b a", "c d", "d c"}, "f:1: the resources wait for each other: t#a (f:1) -> t#b (f:2) -> t#a (f:1) (remove one of these references)\nf:3: the resources wait for each other: t#c (f:3) -> t#d (f:4) -> t#c (f:3) (remove one of these references)"},
		"joined cycles":       {[]string{"a b", "b a c", "c d", "d c"}, "f:1: the resources wait for each other: t#a (f:1) -> t#b (f:2) -> t#a (f:1) (remove one of these references)\nf:3: the resources wait for each other: t#c (f:3) -> t#d (f:4) -> t#c (f:3) (remove one of these references)"},
	} {
		t.Run(name, func(t *testing.T) {
			got := resource.CheckLinks(parse(tc.in...), func(ref model.Ref) bool { return ref.Name == "earlier" })
			if got.Error() != tc.want {
				t.Errorf("got  %s\nwant %s", got.Error(), tc.want)
			}
		})
	}
}

// A chain as long as a manifest can be, and a cycle of all of it, are no burden.
func TestCheckOfALongChain(t *testing.T) {
	const many = 50_000
	var lines []string
	for i := range many {
		lines = append(lines, fmt.Sprintf("r%d r%d", i, i+1))
	}
	sound := parse(append(lines, fmt.Sprintf("r%d", many))...)
	if got := resource.CheckLinks(sound, nil); len(got) > 0 {
		t.Fatal(got)
	}
	if got := resource.CheckLinks(parse(append(lines, fmt.Sprintf("r%d r0", many))...), nil); len(got) != 1 {
		t.Fatalf("%d problems", len(got))
	}
}

// Hints cost a comparison with every name: of many unknown references only the
// first have them, so a large manifest is judged at once.
func TestHintsOfManyUnknownReferences(t *testing.T) {
	const many = 20_000
	var lines []string
	for i := range many {
		lines = append(lines, fmt.Sprintf("name%d nome%d", i, i))
	}
	got := resource.CheckLinks(parse(lines...), nil)
	if last := got[len(got)-2]; got[0].Hint != "did you mean `t#name1`?" || last.Hint != "" {
		t.Fatalf("%d problems, hints %q and %q", len(got), got[0].Hint, last.Hint)
	}
}
