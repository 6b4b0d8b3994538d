package yamlread

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/racing"
)

// samePieces reads a document in pieces of several sizes and as a whole, and returns the number of
// sizes that work.
func samePieces(t *testing.T, data []byte) (cut int) {
	t.Helper()
	if json.Valid(data) || !isText(data) {
		return 0
	}
	y := yamlReader{name: "m.yaml"}
	if bytes.ContainsAny(data, Breaks) {
		data, y.restore = hideBreaks(data)
	}
	data = asYAML11(data)
	s := NewSource(y.name, string(data), true)
	sameNodes(t, y, s, data)
	for _, size := range []int{1, 40} {
		got, problems, err := readPieces(s, y.restore, data, size)
		if err != nil {
			continue
		}
		cut++
		want, wantProblems, readable := y.readAtOnce(s, data)
		if !readable {
			t.Fatalf("read in pieces of %d, but not as a whole: %v\n%q", size, wantProblems, data)
		}
		if got, want := flat(got), flat(want); !slices.Equal(got, want) {
			t.Fatalf("pieces of %d\n got %+v\nwant %+v\n%q", size, got, want, data)
		}
		if !reflect.DeepEqual(problems.Sorted(), wantProblems.Sorted()) {
			t.Fatalf("pieces of %d\n got %v\nwant %v\n%q", size, problems, wantProblems, data)
		}
	}

	return cut
}

// isText reports whether a document may contain data.
func isText(data []byte) bool {
	return utf8.Valid(data) && !bytes.HasPrefix(data, []byte("\ufeff")) && !bytes.ContainsFunc(data, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r >= 0x7f && r < 0xa0 && r != 0x85 || r == 0xfffe || r == 0xffff
	})
}

// value is a node of a tree, or a key.
type value struct {
	kind Kind
	span int
	text string
	at   model.Position
}

// flat returns the nodes of a tree in order.
func flat(t *Tree) []value {
	var out []value
	for i := range t.Len() {
		n := t.Node(i)
		v := value{kind: n.Kind, span: n.Span(), at: t.Position(n.At)}
		if v.kind != List && v.kind != Map {
			v.text = t.TextOf(*n)
		}
		out = append(out, v)
	}

	return out
}

// sameNodes compares a tree with the nodes of the parser.
func sameNodes(t *testing.T, y yamlReader, s *Source, data []byte) {
	t.Helper()
	read, problems, ok := y.readAtOnce(s, data)
	root, _, _ := parse(data)
	if !ok || root == nil || len(problems) > 0 || bytes.Contains(data, []byte("<<")) {
		return
	}
	nodes := flat(read)
	var same func(n *yaml.Node, isKey bool)
	same = func(n *yaml.Node, isKey bool) {
		v := nodes[0]
		nodes = nodes[1:]
		// The parser places the end after the last line. A key that is an alias has the position of
		// the alias.
		exists := n.Line <= bytes.Count(data, []byte("\n"))+1
		meant := n
		if n.Kind == yaml.AliasNode {
			meant = n.Alias
		}
		if !isKey {
			n = meant
		}
		text := meant.Value
		if y.restore != nil {
			text = y.restore.Replace(text)
		}
		if v.kind > Null && v.kind < List && v.text != text && meant.Tag != "!!binary" || exists && (v.at.Line != n.Line || v.at.Column != n.Column) {
			t.Fatalf("%+v, for the parser %+v\n%q", v, n, data)
		}
		for i, child := range meant.Content {
			same(child, meant.Kind == yaml.MappingNode && i%2 == 0)
		}
	}
	same(root, false)
	if len(nodes) > 0 {
		t.Fatalf("more nodes than the parser has: %+v\n%q", nodes, data)
	}
}

// tricky are lists that are easy to cut at a wrong place.
var tricky = []string{
	"a:\n  - b\n  - c\n  - d\n",
	"a:\n- b\n- c\n- d\ne: f\n",
	"- a\n- b\n- c\n",
	"  - a\n  - b\n  - c\n",
	"---\na:\n  - b\n  - c\n  - d\n...\n",
	"a:\n  - b\n  - c\n  - d\n---\n- e\n",
	"%YAML 1.1\n---\n- a\n- b\n- c\n",
	"%TAG ! tag:x,2000:\n---\n- !a b\n- c\n- d\n",
	"a: text\n  - b\n  - c\n  - d\n",
	"a: \"text\n  - b\n  - c\n  - d\"\n",
	"a: 'text\n  - b\n  - c\n  - d'\ne: 1\n",
	"a: [b,\n  - c\n  - d\n  - e]\n",
	"a: |\n  - b\n  - c\n  - d\ne: f\n",
	"a: |2\n    - b\n  - c\n  - d\n  - e\n",
	"a:\n  - b: |\n      - x\n      - y\n      - z\n  - c: >-\n      - x\n\n      - y\n  - d: |+\n      text\n\n  - e\n",
	"a:\n  - |\n   - x\n  - |1\n    - y\n  - >\n\n  - z\n",
	"a:\n  - b: \"x\n  - y\"\n  - c\n  - d\n  - e\n",
	"a:\n  - b: 'x\n  - y'\n  - c: 'x\n  - y'\n  - d\n  - e\n",
	"a:\n  - {b: 1,\n  c: 2}\n  - d\n  - e\n  - f\n",
	"a:\n  - [b,\n  c]\n  - d\n  - e\n  - f\n",
	"a:\n  - b\n    c\n    - d\n  - e\n  - f\n",
	"a:\n  - b: c\n    d: e\n  # comment\n  - f: g\n# comment\n  - h:\n      # comment\n      i: j\n\n    # comment\n  - k\n # comment\nl: m\n",
	"a:\n  - b # c\n  - # d\n    e: f\n  - g: h # i\n    # j\n\n  # k\n\n  - l\n",
	"a:\n  - b:\n  - ? c\n  - ? d\n    : e\n  - ? f\n    # g\n  # h\n  - ?\n  -\n  - - i\n    - j\n  -\n    - k\n  - :\nl:\n",
	"a:\n  - ? b\n  - ? c\n\n    # d\n  - ? e\n# f\n",
	"a:\n  - b: 1\n    b: 2\n  - c: 1\n    c: 2\n  - d: 1\n    d: 2\ne: 1\ne: 2\na: 3\n",
	"a: 1\na:\n  - b: 1\n  - b: 1\n  - b: 1\n",
	"a:\n  - <<: {b: 1}\n    c: 2\n  - <<: [{b: 1}, 2]\n  - <<: 1\n",
	"x: &x {b: 1}\na:\n  - <<: *x\n  - c\n  - d\n",
	"a:\n  - &x b\n  - *x\n  - d\n  - e\n",
	"a:\n  - b\n  - c\n  - &x d\n  - e\nf: *x\n",
	"a: &x 1\nb:\n  - &x 2\n  - 3\n  - 4\nc: *x\n",
	"a: &x 1\nb:\n  - &x k: 2\n  - 3\n  - 4\nc: *x\n",
	"a: &x\n  - b\n  - c\n  - d\ne: *x\n",
	"m: &m\n  a:\n    - b\n    - c\n    - d\nn: *m\n",
	"m: &m\n  a:\n    - b\n    - c\n    - *m\n",
	"a: !!seq\n  - b\n  - c\n  - d\n",
	"a: !x\n  - !y b\n  - !!int c\n  - !!binary d\n  - !!str 1\n  - !\n",
	"a:\r\n  - b: c\r\n    d: |\r\n      - x\r\n      y\r\n  - e\r\n  -\r\n  - f\r\n",
	"a:\r  - b\r  - c\n  - d\n  - e\r\n",
	"a:\n  - b\r  - c\n  - d\n  - e\n",
	"a:\n\t- b\n\t- c\n\t- d\n",
	"a:\n  -\tb\n  -\tc: d\n  - \te\n  - f\n",
	"a:\n  - |\n    \tb\n  - |\n\t\tc\n  - d\n",
	"\ufeffa:\n- b\n- c\n- d\n",
	"a:\n- b\n- c\n\ufeff- d\n- e\n",
	"- \n- \ufeff\n-",
	"a:\n  - \u0085b\n  - c\u2028d\n  - e\n  - ü: ä\n    ö: ß\n",
	"a:\n  - b\n - c\n  - d\n  - e\n",
	"a:\n  - b\n  - c\n  - d\n f: g\n",
	"a:\n  - b\n  - c\n  - d\n  f\n",
	"a:\n  - b\n  - c\n  -d\n  - e\n",
	"a:\n  - b\n  - c\n  --- d\n  - e\n",
	"- b\n- c\n--- d\n- e\n",
	"- b\n- c\n--- \n- e\n- f\n- g\n",
	"a: {b: [\n  - c\n  - d\n  - e\n",
	"- - a\n  - b\n  - c\n- - d\n  - e\n  - f\n",
	"- a:\n  - b\n  - c\n  d: 1\n- a:\n  - b\n  - c\n- e\n",
	"a:\n  - b: c: d\n  - e\n  - f\n",
	"a:\n  - @b\n  - e\n  - f\n",
	"a:\n  - b\n  - c\n  - d\n%e\n",
	"a:\n  - b:\n      - c\n      - d\n      - e\n  - f:\n      - c\n      - d\n      - e\n  - g\n",
	"a:\n  - b\n  - c\n  - d",
	"a:\n  - b\n  - c\n  -",
	"a:\n  - \"{{ x\n  - y }}\"\n  - c\n  - d\n",
	"{\n  - a\n  - b\n  - c\n}",
	"? - a\n  - b\n  - c\n: - d\n  - e\n  - f\n",
	"a: # comment\n  # comment\n\n  - b\n\n  - c\n  - d\n",
}

// corpus returns the tricky documents and every YAML document of the repository.
func corpus(tb testing.TB) [][]byte {
	tb.Helper()
	var out [][]byte
	for _, text := range tricky {
		out = append(out, []byte(text), []byte(strings.ReplaceAll(text, "\n", "\r\n")))
	}
	err := filepath.WalkDir("../../..", func(path string, e fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || e.IsDir() || ext != ".yaml" && ext != ".yml" && ext != ".txtar" && ext != ".md" {
			return err
		}
		data, err := os.ReadFile(path)
		out = append(out, data)
		for _, part := range bytes.Split(data, []byte("\n-- ")) {
			_, part, _ = bytes.Cut(part, []byte(" --\n"))
			out = append(out, part)
		}
		for i, part := range bytes.Split(data, []byte("\n```")) {
			if _, part, _ = bytes.Cut(part, []byte("\n")); i%2 == 1 {
				out = append(out, part)
			}
		}

		return err
	})
	if err != nil {
		tb.Fatal(err)
	}

	return out
}

// TestPieces reads the tricky documents in pieces of every size.
func TestPieces(t *testing.T) {
	cut := 0
	for _, data := range corpus(t) {
		cut += samePieces(t, data)
	}
	if cut < 100 {
		t.Errorf("only %d readings in pieces", cut)
	}
}

// heads, items and tails build documents with one list. Some items only look like items.
var (
	heads = []string{"a:\n", "---\na: # b\n", "# a\n\n", "m:\n  x: [1,\n    2]\n  r:\n", "d: {x: &x {k: v}}\na:\n", "a: |\n", "a: >\n  b\n", "a: \"b\n", "l:\n  - x\n  - y\n  - z\nr:\n", "- a:\n", "? a\n:\n", "a: b\n", "a: !!seq\n", "%YAML 1.2\n---\na:\n", "a: &a\n"}
	items = []string{
		"- b\n", "-\n", "- b: c\n  d: e\n", "- b:\n    - c\n    - d\n    - e\n", "- b:\n  - c\n  - d\n", "- |\n  - x\n   - y\n\n", "- >1-\n  x\n  - y\n", "- b: |+\n    - x\n\n\n", "- b: |2\n      x\n    - y\n",
		"- \"b\n  - c\"\n", "- 'b\n- c'\n", "- [b,\n- c]\n", "- {b: [c,\n  d]}\n", "- ? b\n", "- ? b\n  # c\n# d\n", "- ? - b\n    - c\n  : - d\n", "- :\n", "- b # c\n# d\n\n", "- # b\n  c: d\n", "\n# b\n\n", "  # b\n", " # b\n",
		"- b\n  c\n  - d\n", "- - b\n  - c\n- - d\n", "-\n  b: c\n", "-\tb\n", "- \tb\n", "- b: 1\n  b: 2\n", "- <<: {b: c}\n  d: e\n", "- <<: 1\n", "- !!int b\n", "- !b\n", "- !!binary b\n", "- &x b\n", "- *x\n", "- &x k: v\n", "- <<: *x\n",
		"- \"b\n", "- b\"\n", "- '\n", "- [\n", "- }\n", "  b\n", "-b\n", "--- b\n", "b: c\n", "- b: c: d\n", "- \"\\u0085\": \u0085\u2028\n", "- ü: ä\n", "- b\r  c\n", "- b: ~\n  null: c\n  ~: d\n", "- 0644\n- 1.10\n- yes\n", "- ${ b }: \"{{ c }}\"\n", "- |\n  \tb\n", "- |\n\tb\n", "- {{ b }}\n", "- b: [c, {d: e}, \"f\",\n    g: h]\n",
	}
	tails = []string{"", "e: f\n", "# e\n", "\n\n", "e: *x\n", "...\n", "---\ne\n", "  e: f\n", "\"\n", "]\n", "a: twice\n", "- e\n", "      - e\n      - f\n      - g\n", "e", "e:\n  - f: 1\n    f: 2\n"}
)

// fields are entries of mappings. Some only look like entries.
var fields = []string{
	"k: v\n", "\"q r\": 1\n", "'s': 1\n", "k: |\n  x: y\n\n", "k: >+\n  x\n\n\n", "? c\n: d\n", "? c\n", "<<: {z: 1}\n", "<<: [{z: 1}, {k: 2}]\n", "<<: *x\n", "l:\n- a\n- b\n", "l:\n  - a\n  - b: c\n    d: e\n",
	"m:\n  n: o\n  p:\n    q: r\n", "n:\n  k: 1\n  k: 2\n", "k: \"a\n  b: c\"\n", "&y o: v\n", "*x : v\n", "# c\n", "  # c\n", "\n", "k: [a,\n  b: c]\n", "k: # c\n  - a\n", "null: 1\n", "~:\n  a: 1\n", "x: &x {a: 1}\n", "y: *x\n", "z: &x\n  a: *x\n", "k:\n\n# c\n  a: b\n",
	"k:\n  - - a\n    - b\n  -\n    c: d\n", "t: !x\n  a: b\n", "u:\n", "v: # c\n", "w:\n  |\n  a\n", "-x: y\n", "a b c: d\n", "a#b: c # d: e\n", "e: f: g\n", "\"g\n", "'\n", "{a: b}: c\n", "k: 'a\nb: c'\n", "k:\n    deep: 1\n  less: 2\n", "- a\n", "--- b\n", "\tk: v\n", "k:\tv\n", "k:\n  \ta: b\n", "ü\u2028: \u0085\n", "${ a }: b\n", "i: |\n  \tx\n", "b: ]\n", "1: 2\n01: 3\n",
}

// composeMapping builds a document of nested entries. bytes selects them.
func composeMapping(choice []byte) []byte {
	if len(choice) < 4 {
		return nil
	}
	var b strings.Builder
	indent := ""
	for _, c := range choice[1:] {
		field := fields[int(c)%len(fields)]
		if c < 224 { // a few make the rest unreadable
			field = fields[int(c)%36]
		}
		if c%13 == 0 {
			b.WriteString(indent + "nested" + strings.Repeat("x", int(c)%7) + ":\n")
			indent += "  "
		}
		b.WriteString(indent + strings.TrimSuffix(strings.ReplaceAll(field, "\n", "\n"+indent), indent))
		if c%11 == 0 {
			indent = strings.TrimSuffix(indent, "  ")
		}
	}
	if choice[0]&1 == 1 {
		return []byte(strings.ReplaceAll(b.String(), "\n", "\r\n"))
	}

	return []byte(b.String())
}

// compose builds a document. bytes selects its parts.
func compose(choice []byte) []byte {
	if len(choice) < 4 {
		return nil
	}
	var b strings.Builder
	b.WriteString(heads[int(choice[0])%len(heads)])
	indent := strings.Repeat(" ", int(choice[1])%3*2)
	for _, c := range choice[3:] {
		item := items[int(c)%len(items)]
		if c < 224 { // a few make the rest unreadable
			item = items[int(c)%32]
		}
		b.WriteString(indent + strings.TrimSuffix(strings.ReplaceAll(item, "\n", "\n"+indent), indent))
	}
	b.WriteString(tails[int(choice[2]>>1)%len(tails)])
	text := b.String()
	if choice[2]&1 == 1 {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}

	return []byte(text)
}

func TestPiecesOfComposedDocuments(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	cut, documents := 0, racing.Less(10_000, 1_000)
	for range documents {
		choice := make([]byte, 6+random.Uint64()%6)
		_, _ = random.Read(choice)
		cut += samePieces(t, compose(choice)) + samePieces(t, composeMapping(choice))
	}
	if cut < documents/2 {
		t.Errorf("only %d readings in pieces", cut)
	}
}

// FuzzPieces reads any text, and the documents that its bytes select, in pieces and as a whole.
func FuzzPieces(f *testing.F) {
	for _, data := range corpus(f) {
		if len(data) < 4<<10 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		samePieces(t, data)
		samePieces(t, compose(data[:min(len(data), 12)]))
		samePieces(t, composeMapping(data[:min(len(data), 12)]))
	})
}
