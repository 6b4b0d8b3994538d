package document_test

import (
	"testing"

	"github.com/musterfleet/muster/resources/document"
)

// TestDialects reads valid YAML that the parser alone rejects. Positions are preserved.
func TestDialects(t *testing.T) {
	for text, want := range map[string]string{
		"%YAML 1.2\n---\na: 1\n":                               `{"a":1}`,
		"# head\n\n%YAML 1.2 # ours\r\n---\na: 1.2\n":          `{"a":1.2}`,
		"\ufeffa: 1\n":                                         `{"a":1}`,
		"\ufeff# head\n%YAML 1.2\n---\na: 1\n":                 `{"a":1}`,
		"\ufeff{\"a\": 1}":                                     `{"a":1}`,
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

// FuzzRead reads any text as YAML and as JSON. It never panics, problems have positions, and the
// result is valid JSON.
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
