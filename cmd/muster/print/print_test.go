package print

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"
)

func printer() (Printer, *bytes.Buffer, *bytes.Buffer) {
	out, err := &bytes.Buffer{}, &bytes.Buffer{}

	return Printer{Out: out, Err: err}, out, err
}

func TestTable(t *testing.T) {
	t.Parallel()
	p, out, remarks := printer()
	p.Table([]string{"NODE", "REASON"}, [][]string{{"web01", "é"}, {"n", "a\x1b[2J"}}, "none")
	if want := "NODE   REASON\nweb01  é\nn      a\\u001b[2J\n"; out.String() != want {
		t.Errorf("got\n%s", out)
	}
	out.Reset()
	p.Table([]string{"NODE"}, nil, "no known nodes")
	if out.String() != "" || remarks.String() != "no known nodes\n" {
		t.Errorf("without rows: %q, %q", out, remarks)
	}
}

// A list is a list in documents, also without elements, and keys keep their order.
func TestDocuments(t *testing.T) {
	t.Parallel()
	type item struct {
		B []int  `json:"b"`
		A string `json:"a"`
	}
	for name, c := range map[string]struct {
		format Format
		value  any
		want   string
	}{
		"json":          {Format{JSON: true}, item{B: []int{1}, A: "x: y"}, "{\n  \"b\": [\n    1\n  ],\n  \"a\": \"x: y\"\n}\n"},
		"yaml":          {Format{YAML: true}, item{B: []int{1}, A: "x: y"}, "b:\n  - 1\na: 'x: y'\n"},
		"yaml lines":    {Format{YAML: true}, item{A: "one\ntwo\n"}, "b: null\na: |\n  one\n  two\n"},
		"no items":      {Format{JSON: true}, []item(nil), "[]\n"},
		"no items yaml": {Format{YAML: true}, []item(nil), "[]\n"},
		"text":          {Format{}, item{}, "text\n"},
	} {
		p, out, _ := printer()
		if err := p.Result(c.format, c.value, func() { p.Printf("text\n") }); err != nil || out.String() != c.want {
			t.Errorf("%s: got %q, %v", name, out, err)
		}
	}
	for format, want := range map[Format]string{{JSON: true}: "{\"a\":1}\n", {YAML: true}: "---\na: 1\n", {}: "line\n"} {
		p, out, _ := printer()
		if err := p.Item(format, map[string]int{"a": 1}, "line"); err != nil || out.String() != want {
			t.Errorf("%+v: got %q, %v", format, out, err)
		}
	}
}

// failing fails every write but the first.
type failing struct {
	writes int
	err    error
}

func (f *failing) Write(b []byte) (int, error) {
	if f.writes++; f.writes > 1 {
		return 0, f.err
	}

	return len(b), nil
}

func TestOutputKeepsItsFirstError(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	for err, want := range map[error]error{full: full, syscall.EPIPE: nil} {
		out := NewOutput(&failing{err: err})
		p := Printer{Out: out}
		p.Printf("one")
		if out.Failure() != nil {
			t.Errorf("%v: failed at once", err)
		}
		p.Printf("two")
		if got := out.Failure(); !errors.Is(got, want) {
			t.Errorf("%v: got %v", err, got)
		}
	}
}

func TestAgeAndCount(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var got []string
	for _, d := range []time.Duration{-time.Hour, 1500 * time.Millisecond, 90 * time.Minute, 59 * time.Minute, 49 * time.Hour} {
		got = append(got, Age(now.Add(-d), now))
	}
	got = append(got, Age(time.Time{}, now), Count(1, "node"), Count(0, "node"))
	if want := "0s 2s 1h30m 59m 2d - 1 node 0 nodes"; strings.Join(got, " ") != want {
		t.Errorf("got %q", got)
	}
}
