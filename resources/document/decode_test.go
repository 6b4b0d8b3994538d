package document_test

import (
	"strings"
	"testing"
	"time"

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

func decoded(t *testing.T, text string) (target, *document.Decoder) {
	t.Helper()
	v, problems := document.Read("d.yaml", []byte(text), 1<<20)
	d := &document.Decoder{Problems: problems}
	out := target{On: true}
	d.Document(v, &out)

	return out, d
}

func TestDecode(t *testing.T) {
	got, d := decoded(t, "size: 1\nwithin: {list: [a, 07], size: }\ntext: \"\"\non: no\nat: 2030-01-31T12:00:00Z\nmap: {a: 1}\nany: {a: [1, x]}\n")
	if len(d.Problems) > 0 {
		t.Fatal(d.Problems)
	}
	if got.Size != 1 || strings.Join(got.Inner.List, " ") != "a 07" || got.Text == nil || *got.Text != "" || got.On || got.At.Year() != 2030 || got.Map["a"] != 1 || got.Any["a"].([]any)[0] != 1 {
		t.Errorf("%+v", got)
	}
	if at := d.Positions["within.list.1"]; at.Line != 2 || at.Column != 20 {
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
		"rollout: {}":               "d.yaml:1:1: unknown key `rollout`",
		"on: true\non: no\nx: y":    "d.yaml:2:1: duplicate key `on`, first at d.yaml:1:1 (keep one of them)\nd.yaml:3:1: unknown key `x`",
	} {
		if _, d := decoded(t, text); d.Problems.Error() != want {
			t.Errorf("%q gives\n%v\nwant\n%s", text, d.Problems, want)
		}
	}
}
