// Memory is measured without the race detector, like the product.

//go:build !race

package document_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/testing/heap"
)

// repeated returns a text of about a megabyte that repeats a part with its number.
func repeated(part string) string {
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		b.WriteString(strings.ReplaceAll(part, "#", fmt.Sprintf("%05d", i)))
	}

	return b.String()
}

// shapes are documents of a megabyte, most of them with the shortest values.
var shapes = map[string]string{
	"list of short maps":      "data:\n  x:\n" + repeated("  - {a: 1}\n"),
	"list of short values":    "data:\n  x:\n" + repeated("  - a\n"),
	"list of nothing":         repeated("-\n"),
	"list over lists":         "data:\n" + repeated("  -\n    - a\n    - b\n"),
	"flow collection":         "data:\n  x: [" + repeated("a,") + "a]\n",
	"flow over lines":         "data:\n  x: [" + repeated("a,b,c,d,e,f,g,h,i,\n  ") + "a]\n",
	"mapping of short values": "data:\n" + repeated(" a#: 1\n"),
	"mapping of mappings":     "data:\n" + repeated(" a#:\n  b: 1\n  c: d\n"),
	"two large mappings":      "data:\n" + repeated(" a#: 1\n") + "overrides:\n" + repeated(" a#: {}\n"),
	"deep flow":               "data:\n x:\n" + repeated(" - "+strings.Repeat("[", 80)+strings.Repeat("]", 80)+"\n"),
	"deep lists":              "data:\n x:\n" + repeated(" "+strings.Repeat("- ", 80)+"a\n"),
	"long strings":            "data:\n x:\n" + repeated(" - "+strings.Repeat("abcdefghi, ", 1000)+"\n"),
	"one text":                "data:\n x: |\n" + repeated("   abc, def: ghi\n"),
	"escapes":                 "data:\n x:\n" + repeated(" - \"a\\n\"\n"),
	"aliases":                 "data:\n x: &x {a: 1, b: 2, c: 3}\n y:\n" + repeated(" - *x # so that there are fewer\n"),
	"merges":                  "data:\n x: &x {a: 1, b: 2, c: 3}\n y:\n" + repeated(" - <<: *x\n   b: 1 # so that there are fewer\n"),
	"anchors":                 "data:\n x:\n" + repeated(" - &a# {a: 1}\n"),
	"duplicate keys":          "data:\n" + repeated(" a: 1\n"),
	"values of unknown tags":  "data:\n x:\n" + repeated(" - !a b\n"),
	"mistake at the end":      "data:\n x:\n" + repeated(" - {a: 1}\n") + " - b: c: d\n",
	"open at the end":         "data:\n x:\n" + repeated(" - {a: 1}\n") + " - \"b\n",
	"a tab in a block":        "data:\n x:\n" + repeated(" - {a: 1}\n") + " - |\n  \ta\n",
	"breaks of YAML 1.1":      "data:\n x:\n" + repeated(" - abc\u2028\n"),
	"JSON list":               `{"data":{"x":[` + repeated(`{"a":1},`) + `1]}}`,
	"JSON numbers":            `{"data":{"x":[` + repeated(`1,`) + `1]}}`,
	"JSON mapping":            `{"data":{` + repeated(`"a#":1,`) + `"a":1}}`,
	"JSON escapes":            `{"data":[` + repeated(`"a\n",`) + `1]}`,
	"broken JSON":             `{"data":{"x":[` + repeated(`{"a":1},`),
}

// maxTimes limits the memory as a multiple of the size. The shortest values have two bytes and take
// about 270. maxTimesOfText is the limit for documents with long texts.
const (
	maxTimes       = 180
	maxTimesOfText = 3
)

// TestMemory measures the memory of reading each shape, without the document itself.
func TestMemory(t *testing.T) {
	if !heap.Alone(t) {
		return
	}
	for name, text := range shapes {
		t.Run(name, func(t *testing.T) {
			data := []byte(text)
			var v document.Value
			peak := heap.Peak(func() { v, _ = document.Read("m.yaml", data, 16<<20) })
			times := float64(peak) / float64(len(data))
			t.Logf("%.1f times its size, %v", times, v.Kind)
			most := float64(maxTimes)
			if name == "long strings" || name == "one text" {
				most = maxTimesOfText
			}
			if times > most {
				t.Errorf("%.1f times its size", times)
			}
		})
	}
}
