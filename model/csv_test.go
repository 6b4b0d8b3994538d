package model_test

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

// TestCSV: what nodes chose is one cell, no formula, and does nothing to a terminal; a number stays
// one.
func TestCSV(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cells := map[string]string{
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": `\u000d=1`, "\n=1": "'\n=1", "＝1": "'＝1",
		"a,b": "a,b", `say "hi"`: `say "hi"`, "one\r\ntwo\nthree": "one\ntwo\nthree", "\x1b[2J": `\u001b[2J`, "a=b": "a=b", "": "", "\xff": "\ufffd",
		// Where a spreadsheet expects semicolons or tabs between cells, it begins a cell behind one, or a row behind a line end.
		"a;=1": "a;'=1", "a; @x;-1": "a; '@x;'-1", "a\t+1": "a\t'+1", "a\n=1": "a\n'=1", "a;b": "a;b", "a -1;": "a -1;", "=a;=b": "'=a;'=b", `a;"=1`: `a;"'=1`, "2;＝1": "2;'＝1",
	}
	rows, want := [][]model.CSVCell{{{Text: "-5"}}}, []string{"-5"}
	for text, shown := range cells {
		rows, want = append(rows, []model.CSVCell{{Text: text, Chosen: true}}), append(want, shown)
	}
	if err := model.WriteCSV(&out, []string{"what"}, rows); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.HasPrefix(text, "what\r\n-5\r\n") || !strings.Contains(text, `"say ""hi"""`+"\r\n") || strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
	r := csv.NewReader(&out)
	r.FieldsPerRecord = 1
	all, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, row := range all {
		got[row[0]] = true
	}
	for _, w := range want {
		if w != "" && !got[w] {
			t.Errorf("%q is missing in %v", w, got)
		}
	}
}
