package api

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/view"
)

// TestAnswersTable writes hostile answers as text, and marks a table with missing answers.
func TestAnswersTable(t *testing.T) {
	t.Parallel()
	a := view.Answer{Text: "a;=1", Stdout: "up\n＝HYPERLINK(1)\n", Stderr: "\x1b[2J"}
	a.Node = "web01"
	for _, incomplete := range []string{"", "reading ended after 64 MiB"} {
		file, err := newTable("a.csv", answersHeader, answersRows(view.Answers{Answers: []view.Answer{a}, Incomplete: incomplete}))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(bytes.NewReader(file.Body)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(rows[1][5:], "|"); got != "a;'=1|up\n'＝HYPERLINK(1)\n|\\u001b[2J" {
			t.Errorf("%q", got)
		}
		if incomplete == "" {
			if len(rows) != 2 {
				t.Errorf("%q", rows)
			}
			continue
		}
		if last := rows[len(rows)-1]; len(rows) != 3 || last[0] != "" || last[1] != "incomplete" || last[5] != "Some answers are missing: "+incomplete {
			t.Errorf("%q", rows)
		}
	}
}
