package document_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

type inner struct {
	Size int      `json:"size"`
	List []string `json:"list"`
}

type target struct {
	inner
	Inner inner             `json:"inner" alias:"within"`
	Text  *string           `json:"text"`
	On    bool              `json:"on"`
	At    time.Time         `json:"at"`
	Map   map[string]int    `json:"map"`
	Any   map[string]any    `json:"any"`
	Names map[string]string `json:"names"`
}

func decode(t *testing.T, text string) (target, *document.Decoder) {
	t.Helper()
	v, problems := document.Read("d.yaml", []byte(text), 1<<20)
	d := &document.Decoder{Problems: problems, Places: map[string]model.Position{}}
	out := target{On: true}
	d.Document(v, &out)

	return out, d
}

func TestDecode(t *testing.T) {
	got, d := decode(t, "size: 1\nwithin: {list: [a, 07], size: }\ntext: \"\"\non: no\nat: 2030-01-31T12:00:00Z\nmap: {a: 1}\nany: {a: [1, x]}\n")
	if len(d.Problems) > 0 {
		t.Fatal(d.Problems)
	}
	if got.Size != 1 || strings.Join(got.Inner.List, " ") != "a 07" || got.Text == nil || *got.Text != "" || got.On || got.At.Year() != 2030 || got.Map["a"] != 1 || got.Any["a"].([]any)[0] != 1 {
		t.Errorf("%+v", got)
	}
	if at := d.Places["within.list.1"]; at.Line != 2 || at.Column != 20 {
		t.Errorf("it stands at %s", at)
	}
}

func TestDecodeProblems(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"# nothing":                 "",
		"a":                         "d.yaml:1:1: the document must be a mapping, not a string",
		"onn: true":                 "d.yaml:1:1: unknown key `onn` (did you mean `on`?)",
		"inner: {siz: 1}":           "d.yaml:1:9: unknown key `siz` in `inner` (did you mean `size`?)",
		"inner: 1":                  "d.yaml:1:8: `inner` must be a mapping, not \"1\"",
		"on: maybe":                 "d.yaml:1:5: `on` must be true or false, not \"maybe\"",
		"on: [a]":                   "d.yaml:1:5: `on` must be true or false, not a list",
		"size: 1.5":                 "d.yaml:1:7: `size` must be a whole number, not \"1.5\"",
		"size: 9999999999999999999": "d.yaml:1:7: `size` must be a whole number, not \"9999999999999999999\"",
		"list: [~]":                 "d.yaml:1:8: `list` must be a list without empty items, not nothing",
		"map: {a: b}":               "d.yaml:1:10: `map.a` must be a whole number, not \"b\"",
		"at: [x]":                   "d.yaml:1:5: `at` must be a string, not a list",
		"rollout: {}":               "d.yaml:1:1: key `rollout` is not in this version yet (leave it out until a later version brings it)",
		"on: true\non: no\nx: y":    "d.yaml:2:1: the key `on` is there twice, first at d.yaml:1:1 (keep one of them)\nd.yaml:3:1: unknown key `x`",
	} {
		if _, d := decode(t, text); d.Problems.Error() != want {
			t.Errorf("%q gives\n%v\nwant\n%s", text, d.Problems, want)
		}
	}
}

// TestDialects reads YAML that the parser by itself refuses; places stay what they are.
func TestDialects(t *testing.T) {
	for text, want := range map[string]string{
		"%YAML 1.2\n---\na: 1\n":                               `{"a":1}`,
		"# head\n\n%YAML 1.2 # ours\r\n---\na: 1.2\n":          `{"a":1.2}`,
		"%YAML 1.1\n---\na: 1\n":                               `{"a":1}`,
		"a: |\n  \tx\n  y\nb: 1\n":                             `{"a":"\tx\ny\n","b":1}`,
		"a:\n  b: |- # code\n      \tx\n      \t\ty\n  c: 1\n": `{"a":{"b":"\tx\n\t\ty","c":1}}`,
		"- - a: &x |+\n        \tx\n\n    b: *x\n":             `[[{"a":"\tx\n\n","b":"\tx\n\n"}]]`,
		"- |\n  \tx\n- - |\n   \ty\n":                          `["\tx\n",["\ty\n"]]`,
		"a:\n- |\n \tx\n- b\n":                                 `{"a":["\tx\n","b"]}`,
		"\"a: b\": |\n   \tx\n-b: |\n  \ty\n":                  `{"a: b":"\tx\n","-b":"\ty\n"}`,
		"|\n \tx\n":                                            `"\tx\n"`,
		"--- |\n \tx\n":                                        `"\tx\n"`,
		"a: >\n  \tx\n  y\n":                                   `{"a":"\tx\ny\n"}`,
		"a: |\n  b: |\n    \tx\nc: |\n  \ty\n":                 `{"a":"b: |\n  \tx\n","c":"\ty\n"}`,
	} {
		v, problems := document.Read("d.yaml", []byte(text), 1<<20)
		if got := string(v.AppendJSON(nil)); got != want || len(problems) > 0 {
			t.Errorf("%q gives %s, %v\nwant %s", text, got, problems, want)
		}
	}
	for _, text := range []string{"a: |\n\tx\n", "a:\n\tb: 1\n", "a: |\n  b: |\n    \tx\n\tc: 1\n", "%YAML 1.3\n---\na: 1\n"} {
		if _, problems := document.Read("d.yaml", []byte(text), 1<<20); len(problems) != 1 {
			t.Errorf("%q gives %v", text, problems)
		}
	}
	v, _ := document.Read("d.yaml", []byte("a: |\n  \tx\nb: 1\n"), 1<<20)
	if b, _ := v.Get("b"); b.Pos.Line != 3 || b.Pos.Column != 4 {
		t.Errorf("b stands at %s", b.Pos)
	}
}

// FuzzRead reads anything as YAML and as JSON: it never panics, problems have
// their place, and what is read is JSON again.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"", "a: 1", `{"a": [1, {}]}`, "a: &x [*x]", "? [a]\n: b", "a: .inf", "--- a\n--- b", "<<: {a: 1}", "a: !!float nan", "\xff\xfe", "a: True", "%YAML 1.2\n--- |\n \tx", "- a: |\n    \tx", "0\n--- |\n "} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, text string, isJSON bool) {
		name := "d.yaml"
		if isJSON {
			name = "d.json"
		}
		v, problems := document.Read(name, []byte(text), 1<<20)
		for _, p := range problems {
			if p.Message == "" || p.Pos.File != name {
				t.Errorf("a problem without words or place: %+v", p)
			}
		}
		if len(problems) > 0 {
			return
		}
		if _, again := document.Read("d.json", v.AppendJSON(nil), 16<<20); len(again) > 0 {
			t.Errorf("%q becomes %s: %v", text, v.AppendJSON(nil), again)
		}
	})
}
