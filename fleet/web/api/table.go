package api

import (
	"bytes"
	"fmt"
	"mime"
	"strconv"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// table is an answer with a table in CSV.
type table struct {
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Body        []byte
}

// newTable returns a header and rows as a CSV file to download.
func newTable(name string, header []string, rows [][]model.CSVCell) (*table, error) {
	var out bytes.Buffer
	if err := model.WriteCSV(&out, header, rows); err != nil {
		return nil, err
	}

	return &table{"text/csv; charset=utf-8", mime.FormatMediaType("attachment", map[string]string{"filename": name}), out.Bytes()}, nil
}

// answersHeader has the columns of answersRows.
var answersHeader = []string{"node", "outcome", "exit_code", "time", "seconds", "text", "stdout", "stderr"}

// answersRows returns one row per answer, then one with the outcome "no answer" per node without an answer. If the table
// lacks answers or nodes, further rows without a node have the outcome "incomplete" and the reason.
func answersRows(r view.RequestDetail, all view.Answers) [][]model.CSVCell {
	chosen := func(text string) model.CSVCell { return model.CSVCell{Text: text, Chosen: true} }
	var rows [][]model.CSVCell
	for _, a := range all.Answers {
		code := ""
		if a.ExitCode != nil {
			code = strconv.Itoa(*a.ExitCode)
		}
		rows = append(rows, []model.CSVCell{
			chosen(a.Node), chosen(string(a.Outcome)), {Text: code}, {Text: a.Time.UTC().Format(time.RFC3339)},
			{Text: strconv.FormatFloat(a.Duration.Seconds(), 'f', -1, 64)}, chosen(a.Text), chosen(a.Stdout), chosen(a.Stderr),
		})
	}
	for _, node := range r.Missing {
		rows = append(rows, []model.CSVCell{chosen(node), {Text: "no answer"}, {}, {}, {}, {}, {}, {}})
	}
	incomplete := func(reason string) {
		rows = append(rows, []model.CSVCell{{}, {Text: "incomplete"}, {}, {}, {}, chosen(reason), {}, {}})
	}
	if count := r.Nodes - r.Answers; count > 0 && r.Unknown != "" {
		incomplete(fmt.Sprintf("%d nodes without an answer are unknown: %s", count, r.Unknown))
	}
	if all.Incomplete != "" {
		incomplete("Some answers are missing: " + all.Incomplete)
	}

	return rows
}
