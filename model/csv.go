package model

import (
	"encoding/csv"
	"io"
	"regexp"
	"strings"
)

// CSVCell is a cell of CSV.
type CSVCell struct {
	Text string
	// Chosen is set if a node or another user chose the text.
	Chosen bool
}

// WriteCSV writes a header and rows in the format of RFC 4180. It makes control characters visible, except line ends. It
// marks chosen cells as text if a spreadsheet would evaluate them as a formula.
func WriteCSV(out io.Writer, header []string, rows [][]CSVCell) error {
	w := csv.NewWriter(out)
	w.UseCRLF = true
	_ = w.Write(header) // Error returns the error
	for _, row := range rows {
		fields := make([]string, len(row))
		for i, c := range row {
			fields[i] = c.field()
		}
		_ = w.Write(fields)
	}
	w.Flush()

	return w.Error()
}

// field returns the text to write. Spreadsheets take a quote before a formula as the mark of a text.
func (c CSVCell) field() string {
	lines := strings.Split(strings.ReplaceAll(c.Text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = SafeText(line)
	}
	text := strings.Join(lines, "\n")
	if c.Chosen {
		text = csvFormula.ReplaceAllString(text, "$2'$1$3")
	}

	return text
}

// csvFormula matches text that a spreadsheet may evaluate: at the beginning of a cell, or after a semicolon, a tab or a line
// end. A spreadsheet with another separator than the comma ends a cell there, and may ignore the quotes around the cell.
var csvFormula = regexp.MustCompile(`^([\t\n])|(^[ "]*|[;\t\n][ "]*)([=+@＝＋－＠-])`)
