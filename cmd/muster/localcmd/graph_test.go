package localcmd

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"text/scanner"

	"github.com/musterfleet/muster/model"
)

// dotGraph is what a graph in the DOT language says: the statements of nodes and
// edges, each the texts in quotes with the attributes behind them.
type dotGraph struct{ nodes, edges []string }

// parseDot reads the part of the DOT language that muster writes: quoted names,
// attributes, one statement a semicolon. Anything else is an error.
func parseDot(text string) (dotGraph, error) {
	p := &dotParser{}
	p.s.Init(strings.NewReader(text))
	p.s.Mode = scanner.ScanIdents | scanner.ScanStrings
	p.s.Error = func(_ *scanner.Scanner, msg string) { p.fail(msg) }
	p.next()
	p.expect("digraph")
	p.expect("muster")
	p.expect("{")
	var out dotGraph
	for p.tok != scanner.EOF && p.text != "}" && p.err == nil {
		p.statement(&out)
	}
	p.expect("}")
	if p.tok != scanner.EOF {
		p.fail("something follows the graph")
	}

	return out, p.err
}

type dotParser struct {
	s    scanner.Scanner
	tok  rune
	text string
	err  error
}

func (p *dotParser) fail(msg string) {
	if p.err == nil {
		p.err = fmt.Errorf("%s: %s at %q", p.s.Pos(), msg, p.text)
	}
}

func (p *dotParser) next() {
	p.tok = p.s.Scan()
	p.text = p.s.TokenText()
}

func (p *dotParser) expect(text string) {
	if p.text != text {
		p.fail("no " + text)
	}
	p.next()
}

// name reads a quoted text with the two escapes of DOT.
func (p *dotParser) name() string {
	if p.tok != scanner.String {
		p.fail("no quoted text")
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(p.text, `"`), `"`)
	p.next()

	return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(inner)
}

func (p *dotParser) statement(out *dotGraph) {
	switch p.text {
	case "rankdir":
		p.next()
		p.expect("=")
		p.next()
	case "node":
		p.next()
		p.attributes()
	default:
		from := p.name()
		if p.text != "-" {
			out.nodes = append(out.nodes, from+p.attributes())
			break
		}
		p.next()
		p.expect(">")
		to := p.name()
		out.edges = append(out.edges, from+" -> "+to+p.attributes())
	}
	p.expect(";")
}

func (p *dotParser) attributes() string {
	if p.text != "[" {
		return ""
	}
	p.next()
	out := ""
	for p.text != "]" && p.err == nil {
		key := p.text
		p.next()
		p.expect("=")
		value := p.text
		if p.tok == scanner.String {
			value = p.name()
		} else {
			p.next()
		}
		out += " " + key + "=" + value
		if p.text == "," {
			p.next()
		}
	}
	p.expect("]")

	return out
}

// TestDotIsAGraph parses the output for Graphviz with unusual names.
func TestDotIsAGraph(t *testing.T) {
	ref := func(name string) model.Ref { return model.Ref{Type: "file", Name: name} }
	names := []string{"/plain", `/quo"te`, `/back\slash\`, `\"`, "/né [x]; -> {}", "a,b=c"}
	var g shownGraph
	var want dotGraph
	for i, name := range names {
		step := shownStep{Ref: ref(name)}
		node := "file#" + name
		if i == 1 {
			step.Excluded = "control.if is false"
			node += " style=dotted"
		}
		for _, before := range names[:i] {
			step.Waits = append(step.Waits, shownWait{For: ref(before), Reason: "path:" + before, Automatic: i%2 == 0})
			edge := "file#" + before + " -> file#" + name + " label=path:" + before
			if i%2 == 0 {
				edge += " style=dashed"
			}
			want.edges = append(want.edges, edge)
		}
		want.nodes = append(want.nodes, node)
		g.Resources = append(g.Resources, step)
	}
	got, err := parseDot(g.dot())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%s\ngives %q", err, g.dot(), got)
	}
	if got, err := parseDot(shownGraph{Resources: []shownStep{{Ref: ref("a\nb\x1b\u202e")}}}.dot()); err != nil || len(got.nodes) != 1 || got.nodes[0] != `file#a\u000ab\u001b\u202e` {
		t.Errorf("%v, %q", err, got)
	}
}

// TestTextOfManyResources is a readable list: aligned, one line for each resource and each predecessor, no
// reason twice.
func TestTextOfManyResources(t *testing.T) {
	ref := func(i int) model.Ref { return model.Ref{Type: "file", Name: fmt.Sprintf("/srv/%d", i)} }
	var g shownGraph
	for i := range 100 {
		step := shownStep{Ref: ref(i)}
		if i > 0 {
			step.Waits = []shownWait{{For: ref(i - 1), Reason: "require"}, {For: ref(0), Reason: "path:/srv/0", Automatic: true}, {For: ref(i - 1), Reason: "subscribe"}}
		}
		g.Resources = append(g.Resources, step)
	}
	lines := strings.Split(g.text(), "\n")
	for at, want := range map[int]string{
		0: "  1  file#/srv/0",
		1: "  2  file#/srv/1", 2: "       after file#/srv/0 (require, automatic: path:/srv/0, subscribe)",
		3: "  3  file#/srv/2", 4: "       after file#/srv/1 (require, subscribe)", 5: "       after file#/srv/0 (automatic: path:/srv/0)",
		len(lines) - 4: "100  file#/srv/99",
	} {
		if lines[at] != want {
			t.Errorf("line %d is %q, not %q", at, lines[at], want)
		}
	}
	if len(lines) != 1+2+98*3+1 {
		t.Errorf("there are %d lines", len(lines))
	}
}
