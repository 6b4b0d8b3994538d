package print

import (
	"encoding/csv"
	"regexp"
	"strings"
)

// Cell is a cell of CSV.
type Cell struct {
	Text string
	// Chosen is set where others may have chosen the text.
	Chosen bool
}

// CSV writes rows below a header as RFC 4180 has it. Control characters but line ends are made
// visible, and what others have chosen is marked as text where a spreadsheet would calculate it.
func (p Printer) CSV(header []string, rows [][]Cell) error {
	w := csv.NewWriter(p.Out)
	w.UseCRLF = true
	_ = w.Write(header) // Error has it
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

// field returns what is written for the cell. A quote before a formula is what spreadsheets take
// for the mark of a text.
func (c Cell) field() string {
	lines := strings.Split(strings.ReplaceAll(c.Text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = Text(line)
	}
	text := strings.Join(lines, "\n")
	if c.Chosen {
		text = formula.ReplaceAllString(text, "$2'$1$3")
	}

	return text
}

// formula is what a spreadsheet takes for a formula: at the beginning of a cell, or behind what ends a cell
// or a row where it expects no commas between them. Then it may not take the quotes around a cell for such.
var formula = regexp.MustCompile(`^([\t\n])|(^[ "]*|[;\t\n][ "]*)([=+@＝＋－＠-])`)
