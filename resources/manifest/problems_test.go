package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// TestManyProblems checks documents with problems everywhere: the first problems are reported, the
// others are counted, in limited time.
func TestManyProblems(t *testing.T) {
	const many = 20_000
	for name, c := range map[string]struct{ head, line string }{
		"types":       {"muster:\n  resources:\n", "    - x:\n"},
		"resources":   {"muster:\n  resources:\n    - file:\n", "        - /f%d: {contnt: x}\n"},
		"properties":  {"muster:\n  resources:\n    - file:\n        - /f:\n", "            k%d: x\n"},
		"twice":       {"muster:\n  resources:\n    - file:\n        - /f:\n", "            content: x\n"},
		"expressions": {"muster:\n  resources:\n    - file:\n        - /f:\n            args: [", "\"${ Nope }\","},
		"links":       {"muster:\n  resources:\n    - file:\n        - /f:\n            content: x\n            require:\n", "            - file#/g%d\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString(c.head)
			for i := range many {
				if strings.Contains(c.line, "%d") {
					fmt.Fprintf(&b, c.line, i)
				} else {
					b.WriteString(c.line)
				}
			}
			if strings.HasSuffix(c.head, "[") {
				b.WriteString("]\n")
			}
			_, err := resolve(t, b.String(), options(), manifest.Inputs{})
			problems := model.AsProblems(err)
			if len(problems) != model.MaxProblems+1 || problems.Count() < many-2 {
				t.Fatalf("%d problems, %d counted", len(problems), problems.Count())
			}
			lines := strings.Split(err.Error(), "\n")
			if last := lines[len(lines)-1]; !strings.HasPrefix(last, "and ") || !strings.HasSuffix(last, " more") || !strings.HasPrefix(lines[0], "m.yaml:") {
				t.Errorf("it begins with %s and ends with %s", lines[0], last)
			}
		})
	}
}
