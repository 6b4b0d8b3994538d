package edits_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/edits"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/typetest"
)

type properties = typetest.Properties

// row is a part and a text, with the text, the message or the error that must follow.
type row struct {
	name       string
	before     string
	properties properties
	after      string
	message    string
	err        string
	lines      []int
	// endless marks a part that changes its own result.
	endless bool
}

// partOf returns the part with properties, in the file /f.
func partOf(t testing.TB, typ *resource.Type, p properties) edits.Part {
	t.Helper()
	all := properties{"name": "/f"}
	for key, value := range p {
		all[key] = value
	}
	r, problems := resource.Decode(typ, typetest.Value(all), model.Position{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}

	return r.Spec.(edits.Part)
}

// editTwice returns the edit of a valid part, and fails if a second edit would change the result again.
func editTwice(t *testing.T, p edits.Part, text edits.Text) (got edits.Edit, valid bool) {
	t.Helper()
	if len(p.Validate()) > 0 {
		return got, false
	}
	if got = p.Edit(text, nil); got.Err != nil {
		return got, false
	}
	again := p.Edit(parse(t, got.After.String()), nil)
	if again.Err != nil || again.Change.Message != "" {
		t.Fatalf("%q became %q, and once more: %q, %v, %q", text, got.After, again.Change.Message, again.Err, again.After)
	}

	return got, true
}

func parse(t testing.TB, content string) edits.Text {
	t.Helper()
	text, err := edits.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != content {
		t.Fatalf("%q is read as %q", content, text)
	}

	return text
}

// try applies each row, and its part once more to the result, which it must not change.
func try(t *testing.T, typ *resource.Type, rows []row) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			part := partOf(t, typ, r.properties)
			before := parse(t, r.before)
			got := part.Edit(before, []edits.Part{part})
			if before.String() != r.before {
				t.Fatalf("the edit changed the text before to %q", before)
			}
			if r.err != "" {
				if got.Err == nil || !strings.Contains(got.Err.Error(), r.err) {
					t.Errorf("error %v, without %q", got.Err, r.err)
				}
				return
			}
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			want := r.after
			if r.message == "" {
				want = r.before
			}
			if got.After.String() != want || got.Change.Message != r.message {
				t.Errorf("got %q, %q\nnot %q, %q", got.After, got.Change.Message, want, r.message)
			}
			if r.lines != nil && !slices.Equal(got.Lines, r.lines) {
				t.Errorf("lines %v, not %v", got.Lines, r.lines)
			}
			again := part.Edit(parse(t, want), []edits.Part{part})
			if again.Err != nil || (again.Change.Message != "") != r.endless {
				t.Errorf("once more: %q, %v", again.Change.Message, again.Err)
			}
		})
	}
}

// problem is a mistake in properties, with its message and its remedy.
type problem struct {
	properties properties
	message    string
	hint       string
}

// tryProblems checks that each mistake is reported.
func tryProblems(t *testing.T, typ *resource.Type, all []problem) {
	t.Helper()
	for _, c := range all {
		p := properties{"name": "/f"}
		for key, value := range c.properties {
			p[key] = value
		}
		_, problems := resource.Decode(typ, typetest.Value(p), model.Position{})
		if err := problems.Err(); err == nil || !strings.Contains(err.Error(), c.message) || !strings.Contains(err.Error(), c.hint) {
			t.Errorf("%v: %v, without %q and %q", c.properties, err, c.message, c.hint)
		}
	}
}

// warnings returns the warnings about properties.
func warnings(t *testing.T, typ *resource.Type, p properties) string {
	t.Helper()
	part := partOf(t, typ, p)

	return part.(interface{ Warnings() model.Problems }).Warnings().Err().Error()
}

// lines returns the lines of a text without line ends and without a byte order mark.
func lines(content string) []string {
	var out []string
	for l := range strings.Lines(strings.TrimPrefix(content, "\uFEFF")) {
		out = append(out, strings.TrimRight(l, "\r\n"))
	}

	return out
}

func matches(t testing.TB, pattern, text string) bool {
	t.Helper()
	found, err := regexp.MatchString(pattern, text)
	if err != nil {
		t.Fatal(err)
	}

	return found
}
