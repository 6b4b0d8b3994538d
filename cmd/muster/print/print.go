// Package print writes what commands show: tables, JSON and YAML documents,
// diffs, progress and the log.
package print

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/choria-io/fisk"
	"github.com/tidwall/gjson"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// Format is the output format: text, JSON or YAML.
type Format struct{ JSON, YAML bool }

// AddFormat adds --json and --yaml to a command.
func (f *Format) AddFormat(cmd *fisk.CmdClause) {
	cmd.Flag("json", "Print as JSON").UnNegatableBoolVar(&f.JSON)
	cmd.Flag("yaml", "Print as YAML").UnNegatableBoolVar(&f.YAML)
}

// IsDocument reports whether the format is JSON or YAML.
func (f Format) IsDocument() bool { return f.JSON || f.YAML }

// Printer writes results to Out and remarks about them to Err.
type Printer struct{ Out, Err io.Writer }

// Printf writes text to Out.
func (p Printer) Printf(format string, args ...any) {
	_, _ = io.WriteString(p.Out, Visible(fmt.Sprintf(format, args...)))
}

// Remark writes a line to Err.
func (p Printer) Remark(format string, args ...any) {
	_, _ = io.WriteString(p.Err, Visible(fmt.Sprintf(format, args...))+"\n")
}

// Result writes v as a JSON or YAML document, or calls text.
func (p Printer) Result(f Format, v any, text func()) error {
	if f.IsDocument() {
		return p.Document(v, f.YAML)
	}
	text()

	return nil
}

// Item writes one element of a stream: a line of JSON, a document of YAML, or
// the line text.
func (p Printer) Item(f Format, v any, text string) error {
	switch {
	case f.JSON:
		return p.JSONLine(v)
	case f.YAML:
		_, err := io.WriteString(p.Out, "---\n")
		return errors.Join(err, p.Document(v, true))
	}
	_, err := io.WriteString(p.Out, Visible(text)+"\n")

	return err
}

// JSONLine writes v as one line of JSON.
func (p Printer) JSONLine(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(p.Out, Visible(string(text))+"\n")

	return err
}

// Document writes v as indented JSON, or as YAML. A list without elements is [].
func (p Printer) Document(v any, asYAML bool) error {
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && list.IsNil() {
		v = []any{}
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if asYAML {
		if text, err = document.YAML(text); err != nil {
			return err
		}
	}
	_, err = io.WriteString(p.Out, Visible(string(text)))

	return WithoutReader(err)
}

// Table writes rows in columns below a header, or the remark none without rows. It cuts long cells, because one
// long cell widens its column.
func (p Printer) Table(header []string, rows [][]string, none string) {
	if len(rows) == 0 {
		p.Remark("%s", none)
		return
	}
	width := make([]int, len(header))
	for i, cell := range header {
		width[i] = utf8.RuneCountInString(cell)
	}
	for _, row := range rows {
		for i := range row {
			row[i] = cell(row[i], i == len(header)-1)
			width[i] = max(width[i], utf8.RuneCountInString(row[i]))
		}
	}
	last := 0 // where the last column begins
	for _, w := range width[:len(width)-1] {
		last += w + 2
	}
	for n, row := range append([][]string{header}, rows...) {
		var b strings.Builder
		for i, cell := range row {
			padding := ""
			if i < len(header)-1 {
				padding = strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+2)
			} else {
				cell = p.fit(cell, last, len(rows))
			}
			if n > 0 {
				cell = p.Word(cell)
			}
			b.WriteString(cell + padding)
		}
		p.Printf("%s\n", strings.TrimRight(b.String(), " "))
	}
}

// Rows returns the row of each element of a list, for Table.
func Rows[T any](all []T, row func(T) []string) [][]string {
	rows := make([][]string, len(all))
	for i, one := range all {
		rows[i] = row(one)
	}

	return rows
}

// fit returns the last cell of a row for a terminal. Its column begins at last. It wraps the cell below its column. In a
// table of more than maxWrapped rows it cuts the cell to one line, or to two lines if the column is narrow.
func (p Printer) fit(cell string, last, rows int) string {
	width := p.width()
	room := width - last
	switch isNarrow := room < leastRoom; {
	case rows > maxWrapped && isNarrow && room+width > 0:
		return Cut(cell, room+width)
	case rows > maxWrapped && !isNarrow:
		return Cut(cell, room)
	case isNarrow:
		return cell
	default:
		return strings.Join(wrap(cell, room), "\n"+strings.Repeat(" ", last))
	}
}

// maxWrapped is the maximum number of rows of a table that wraps long texts on a terminal.
const maxWrapped = 10

// leastRoom is the width of the last column below which a terminal wraps whole lines instead.
const leastRoom = 24

// wrap splits a text into lines with a maximum number of characters, between words if possible.
func wrap(text string, most int) []string {
	var lines []string
	left := []rune(text)
	for len(left) > most {
		at := most
		for at > 0 && left[at] != ' ' {
			at--
		}
		if at == 0 {
			at = most
		}
		lines = append(lines, strings.TrimRight(string(left[:at]), " "))
		left = []rune(strings.TrimLeft(string(left[at:]), " "))
	}

	return append(lines, string(left))
}

// cell returns a cell without control characters. The last cell of a row may be longer, because nothing follows it.
func cell(text string, last bool) string {
	most := shortTo
	if last {
		most = longTo
	}

	return Cut(Text(Cut(text, most)), most)
}

// Word colours an outcome or a status.
func (p Printer) Word(word string) string {
	switch model.Outcome(word) {
	case model.OutcomeFailed, model.OutcomeRefused, model.OutcomeUnmet, "rejected", "unreachable":
		return p.paint(word, red)
	case model.OutcomeChanged, model.OutcomeRefreshed, model.OutcomeNoop, model.OutcomeNotRun, "pending":
		return p.paint(word, yellow)
	case model.OutcomeStable, "up-to-date":
		return p.paint(word, green)
	default:
		return word
	}
}

// Diff prints the lines of a diff in colours.
func (p Printer) Diff(diff string) {
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		if IsTerminal(p.Out) {
			line = Text(line)
		}
		p.Printf("%s\n", p.diffLine(line))
	}
}

// diffLine colours a line of a diff.
func (p Printer) diffLine(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return p.paint(line, green)
	case strings.HasPrefix(line, "-"):
		return p.paint(line, red)
	default:
		return line
	}
}

// Changes writes the changes of a transaction with their diffs.
func (p Printer) Changes(t *model.Transaction) {
	for _, c := range t.Changes {
		if c.Property != "" && c.From != c.To {
			p.Printf("  %s %s: %s -> %s\n", Text(t.Ref().String()), Text(c.Property), Text(c.From), Text(c.To))
		}
		for line := range strings.Lines(c.Diff) {
			p.Printf("  %s\n", p.diffLine(Text(strings.TrimSuffix(line, "\n"))))
		}
	}
}

func (p Printer) paint(text, code string) string {
	if !hasColour(p.Out) {
		return text
	}

	return colour(text, code)
}

// Query writes a JSON document, or the value at a GJSON path. Without a format it writes a single value as plain
// text, for scripts. The error of a path without a value names what.
func (p Printer) Query(f Format, text []byte, path, what string) error {
	if path == "" {
		return p.Document(json.RawMessage(text), f.YAML)
	}
	found := gjson.GetBytes(text, path)
	if !found.Exists() {
		return fmt.Errorf("no such %s: %s", what, path)
	}
	if !found.IsObject() && !found.IsArray() && !f.IsDocument() {
		p.Printf("%s", Lines(found.String()+"\n"))
		return nil
	}

	return p.Document(json.RawMessage(found.Raw), f.YAML)
}
