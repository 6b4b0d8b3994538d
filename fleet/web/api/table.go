package api

import (
	"bytes"
	"encoding/csv"
	"mime"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/view"
)

// table is an answer with a table in CSV.
type table struct {
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Body        []byte
}

// newTable returns rows as a CSV file to download.
func newTable(name string, rows [][]string) (*table, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	if err := w.WriteAll(rows); err != nil {
		return nil, err
	}

	return &table{"text/csv; charset=utf-8", mime.FormatMediaType("attachment", map[string]string{"filename": name}), out.Bytes()}, nil
}

// answersTable returns a header and one row per answer.
func answersTable(all view.Answers) [][]string {
	rows := [][]string{{"node", "outcome", "exit_code", "time", "seconds", "text", "stdout", "stderr"}}
	for _, a := range all.Answers {
		code := ""
		if a.ExitCode != nil {
			code = strconv.Itoa(*a.ExitCode)
		}
		rows = append(rows, []string{
			cell(a.Node), cell(string(a.Outcome)), code, a.Time.UTC().Format(time.RFC3339), strconv.FormatFloat(a.Duration.Seconds(), 'f', -1, 64),
			cell(a.Text), cell(a.Stdout), cell(a.Stderr),
		})
	}

	return rows
}

// cell returns a text from a node, quoted so that spreadsheets do not evaluate it as a formula.
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}

	return text
}
