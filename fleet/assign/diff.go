package assign

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Diff returns a unified diff of the terms and of each differing file, empty for none. Changes of kind, mode
// and existence follow the name. It returns the error of ctx.
func (c Content) Diff(ctx context.Context, to Content) (string, error) {
	var out strings.Builder
	out.WriteString(udiff.Unified(c.label+" (terms)", to.label+" (terms)", c.terms, to.terms))
	before, after := c.byName(), to.byName()
	names := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := context.Cause(ctx); err != nil {
			return "", err
		}
		a, there := before[name]
		b, stays := after[name]
		if there && stays && a.is(b) {
			continue
		}
		from, now := c.label+" "+quoted(name), to.label+" "+quoted(name)
		was, is := state(a, there), state(b, stays)
		if was != is {
			from, now = from+was, now+is
		}
		if diff := udiff.Unified(from, now, a.body(), b.body()); diff != "" {
			out.WriteString(diff)
			continue
		}
		out.WriteString("--- " + from + "\n+++ " + now + "\n")
	}

	return out.String(), nil
}

// Lines returns the number of added and removed lines in terms and text files.
func (c Content) Lines(to Content) (added, removed int) {
	count := func(before, after string) {
		// The only error is about edits that do not fit the text.
		diff, _ := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), 0)
		for _, h := range diff.Hunks {
			for _, l := range h.Lines {
				switch l.Kind {
				case udiff.Insert:
					added++
				case udiff.Delete:
					removed++
				}
			}
		}
	}
	count(c.terms, to.terms)
	before, after := c.byName(), to.byName()
	for name, f := range before {
		count(f.Text, after[name].Text)
	}
	for name, f := range after {
		if _, both := before[name]; !both {
			count("", f.Text)
		}
	}

	return added, removed
}

func (c Content) byName() map[string]File {
	out := map[string]File{}
	for _, f := range c.files {
		out[f.Name] = f
	}

	return out
}

// is reports whether two files of a name are equal.
func (f File) is(other File) bool {
	f.Text, f.Omitted, other.Text, other.Omitted = "", "", "", ""

	return f == other
}

// state returns the text after a name.
func state(f File, there bool) string {
	words := f.notes()
	if kind := f.kind(); kind != "" {
		words = slices.Insert(words, 0, kind)
	}
	switch {
	case !there:
		return " (none)"
	case len(words) == 0:
		return ""
	default:
		return " (" + strings.Join(words, ", ") + ")"
	}
}
