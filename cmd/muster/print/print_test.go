package print

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
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

// TestOneCellDoesNotPadAllRows: a node chooses its reported values and the number of manifests; wide cells
// times many rows would fill the disk of a user who prints to a file.
func TestOneCellDoesNotPadAllRows(t *testing.T) {
	t.Parallel()
	p, out, _ := printer()
	long := strings.Repeat("\x1b", 250_000)
	rows := [][]string{{"web01", long, long}}
	for range 1000 {
		rows = append(rows, []string{"web01", "1", "x"})
	}
	p.Table([]string{"NODE", "VERSION", "REASON"}, rows, "")
	if size := out.Len(); size > 1000*200 || strings.Count(out.String(), "…") != 2 {
		t.Errorf("%d bytes", size)
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

// TestNothingObeysATerminal has texts of nodes and servers in everything that is
// written: a terminal is sent no control characters but our own colours.
func TestNothingObeysATerminal(t *testing.T) {
	t.Parallel()
	const evil = "a\x1b[2J\u009b5n\u202eb\x07"
	const want = `a\u001b[2J\u009b5n\u202eb\u0007`
	for name, write := range map[string]func(Printer){
		"text":   func(p Printer) { p.Printf("%s %v\n", evil, errors.New(evil)) },
		"remark": func(p Printer) { p.Remark("%s\n%s", evil, evil) },
		"item":   func(p Printer) { _ = p.Item(Format{}, nil, evil) },
		"JSON":   func(p Printer) { _ = p.Document(map[string]string{"k": evil}, false) },
		"a line": func(p Printer) { _ = p.JSONLine(map[string]string{"k": evil}) },
		"YAML":   func(p Printer) { _ = p.Document(map[string]string{"k": evil}, true) },
		"table":  func(p Printer) { p.Table([]string{"A"}, [][]string{{evil}}, "") },
		"changes": func(p Printer) {
			p.Changes(&model.Transaction{Type: "file", Name: "x", Changes: []model.Change{{Property: evil, From: "1", To: "2", Diff: "+" + evil + "\n"}}})
		},
	} {
		p, out, remarks := printer()
		write(p)
		got := out.String() + remarks.String()
		if strings.ContainsAny(got, "\x1b\u009b\u202e\x07") || name != "YAML" && !strings.Contains(got, want) {
			t.Errorf("%s: %q", name, got)
		}
		if strings.Contains(name, "JSON") || name == "a line" {
			var back map[string]string
			if err := json.Unmarshal([]byte(got), &back); err != nil || back["k"] != evil {
				t.Errorf("%s: %v, %q", name, err, back)
			}
		}
	}
	if got := Visible("\x1b[31mred\x1b[0m \x1b[5mx\n\ty"); got != "\x1b[31mred\x1b[0m \\u001b[5mx\n\ty" {
		t.Errorf("our colours: %q", got)
	}
}

// A text of a node is a value of YAML too, whatever characters it has.
func TestYAMLHoldsAnyText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a\u009b5n", "a\u202eb", "a\x7fb", "a\u0085b", "a\x1bb", "\ufeffa", "a\uffffb", "a\u009b\nb\n", "plain", "\u2028", "a\\u009b", "\U0001f600"} {
		p, out, _ := printer()
		if err := p.Document(map[string]any{"k": text, text: []string{text}}, true); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if strings.ContainsAny(out.String(), "\u009b\u202e\x7f\u0085\x1b") {
			t.Errorf("%q: written as %q", text, out)
		}
		var back map[string]any
		if err := yaml.Unmarshal(out.Bytes(), &back); err != nil || back["k"] != text || back[text] == nil {
			t.Errorf("%q: %v, %q of %s", text, err, back, out)
		}
	}
}

// TestChangesAreOneLineEach: a purged file has a name, chosen by another user, that looks like a line of
// muster.
func TestChangesAreOneLineEach(t *testing.T) {
	t.Parallel()
	p, out, _ := printer()
	p.Changes(&model.Transaction{Type: "scaffold", Name: "/x", Changes: []model.Change{{Property: "/x/a\n\x1b[31mfile#/etc/shadow", From: "present", To: "absent"}}})
	if want := "  scaffold#/x /x/a\\u000a\\u001b[31mfile#/etc/shadow: present -> absent\n"; out.String() != want {
		t.Errorf("got\n%q", out)
	}
}
