package document

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

// whole reads a document as if it were small.
func whole(c converter, data []byte) (Value, model.Problems, bool) {
	node, problems := readNode(c.name, data)
	if problems != nil || node == nil {
		return Value{}, problems, false
	}
	v := c.value(node, 0)

	return v, c.problems, true
}

// samePieces reads a document in pieces of several sizes and as a whole, and
// reports in how many sizes that was possible.
func samePieces(t *testing.T, data []byte) (cut int) {
	t.Helper()
	breaks, problem := checkText("m.yaml", data, false)
	if problem != nil || checkMarks("m.yaml", data) != nil || json.Valid(data) {
		return 0
	}
	c := converter{name: "m.yaml"}
	if breaks {
		data, c.restore = hideBreaks(data)
	}
	data = asYAML11(data)
	for _, size := range []int{1, 40} {
		got, problems, ok := readInPieces(c, data, size)
		if !ok {
			continue
		}
		cut++
		want, wantProblems, readable := whole(c, data)
		if !readable {
			t.Fatalf("read in pieces of %d, but not as a whole: %v\n%q", size, wantProblems, data)
		}
		if !reflect.DeepEqual(normal(got), normal(want)) {
			t.Fatalf("pieces of %d\n got %+v\nwant %+v\n%q", size, got, want, data)
		}
		if !reflect.DeepEqual(problems, wantProblems) {
			t.Fatalf("pieces of %d\n got %v\nwant %v\n%q", size, problems, wantProblems, data)
		}
	}

	return cut
}

// normal returns a value with nil for empty lists and mappings.
func normal(v Value) Value {
	var items []Value
	for _, item := range v.Items {
		items = append(items, normal(item))
	}
	var entries []Entry
	for _, e := range v.Entries {
		e.Value = normal(e.Value)
		entries = append(entries, e)
	}
	v.Items, v.Entries = items, entries

	return v
}

// tricky are lists that could be cut in the wrong place.
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

// corpus returns tricky documents and every one in YAML of the repository.
func corpus(tb testing.TB) [][]byte {
	tb.Helper()
	var out [][]byte
	for _, text := range tricky {
		out = append(out, []byte(text), []byte(strings.ReplaceAll(text, "\n", "\r\n")))
	}
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
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

func TestPieces(t *testing.T) {
	cut := 0
	for _, data := range corpus(t) {
		cut += samePieces(t, data)
	}
	if cut < 100 {
		t.Errorf("only %d readings in pieces", cut)
	}
	for _, broken := range tricky[8:13] {
		if samePieces(t, []byte(broken)) > 0 {
			t.Errorf("a text or flow collection was cut: %q", broken)
		}
	}
}

// heads, items and tails make documents with one list, of items and of what only looks like some.
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

// compose makes a document of the parts that bytes choose.
func compose(choice []byte) []byte {
	if len(choice) < 4 {
		return nil
	}
	var b strings.Builder
	b.WriteString(heads[int(choice[0])%len(heads)])
	indent := strings.Repeat(" ", int(choice[1])%3*2)
	for _, c := range choice[3:] {
		item := items[int(c)%len(items)]
		if c < 224 { // few with what makes the rest unreadable
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
	cut := 0
	for range 10_000 {
		choice := make([]byte, 6+random.Uint64()%6)
		_, _ = random.Read(choice)
		cut += samePieces(t, compose(choice))
	}
	if cut < 1_500 {
		t.Errorf("only %d readings in pieces", cut)
	}
}

// FuzzPieces reads anything in pieces and as a whole, and what its bytes choose.
func FuzzPieces(f *testing.F) {
	for _, data := range corpus(f) {
		if len(data) < 4<<10 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		samePieces(t, data)
		samePieces(t, compose(data[:min(len(data), 12)]))
	})
}
