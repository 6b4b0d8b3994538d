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
		file, err := newTable("a.csv", answersHeader, answersRows(view.RequestDetail{}, view.Answers{Answers: []view.Answer{a}, Incomplete: incomplete}))
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

// TestUnansweredRows tests that the table has a row for each node without an answer, and names the reason if these nodes
// are unknown.
func TestUnansweredRows(t *testing.T) {
	t.Parallel()
	r := view.RequestDetail{RequestRow: view.RequestRow{Nodes: 300, Answers: 1}, Missing: []string{"web02", "=web03"}}
	a := view.Answer{Outcome: "changed"}
	a.Node = "web01"
	file, err := newTable("a.csv", answersHeader, answersRows(r, view.Answers{Answers: []view.Answer{a}}))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(file.Body)).ReadAll()
	if err != nil || len(rows) != 4 || strings.Join(rows[2], "|") != "web02|no answer||||||" || strings.Join(rows[3], "|") != "'=web03|no answer||||||" {
		t.Errorf("%q %v", rows, err)
	}
	r.Missing, r.Unknown = nil, "its target is other nodes by now"
	unknown := answersRows(r, view.Answers{Answers: []view.Answer{a}})
	if last := unknown[len(unknown)-1]; len(unknown) != 2 || last[1].Text != "incomplete" || last[5].Text != "299 nodes without an answer are unknown: "+r.Unknown {
		t.Errorf("%v", unknown)
	}
	if r.Answers = r.Nodes; len(answersRows(r, view.Answers{})) != 0 {
		t.Error("a row for no node")
	}
}
