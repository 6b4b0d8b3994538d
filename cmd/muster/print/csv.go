package print

import (
	"encoding/csv"
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
	if c.Chosen && text != "" && strings.ContainsRune("=+-@\t\n＝＋－＠", []rune(text)[0]) {
		text = "'" + text
	}

	return text
}
