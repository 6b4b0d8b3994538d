package model

import (
	"encoding/csv"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxWordLength is the number of characters of a word that ShortenWords keeps.
const MaxWordLength = 200

// ShortenWords cuts each word of a text after MaxWordLength characters and appends the number of
// removed characters.
func ShortenWords(text string) string {
	if len(text) <= MaxWordLength {
		return text
	}
	var out strings.Builder
	from := 0
	for from < len(text) {
		end := strings.IndexFunc(text[from:], unicode.IsSpace)
		if end < 0 {
			end = len(text) - from
		}
		word := text[from : from+end]
		out.WriteString(shortenWord(word))
		from += end
		if from < len(text) {
			_, n := utf8.DecodeRuneInString(text[from:])
			out.WriteString(text[from : from+n])
			from += n
		}
	}

	return out.String()
}

func shortenWord(word string) string {
	more, what := utf8.RuneCountInString(word)-MaxWordLength, "characters"
	switch {
	case more <= 0:
		return word
	case more == 1:
		what = "character"
	}
	end := 0
	for range MaxWordLength {
		_, n := utf8.DecodeRuneInString(word[end:])
		end += n
	}

	return fmt.Sprintf("%s… (%d more %s)", word[:end], more, what)
}

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

// SafeText makes control characters visible, because a terminal would obey them.
func SafeText(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if IsSafeText(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isUnsafeRune(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}

	return b.String()
}

// IsSafeText reports whether a text has no character that Text makes visible.
func IsSafeText(s string) bool { return strings.IndexFunc(s, isUnsafeRune) < 0 }

// isUnsafeRune reports whether a terminal may act on r, or reorder the text after it. A tab is harmless.
func isUnsafeRune(r rune) bool {
	return r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

// Redacted replaces a secret wherever it would be shown.
const Redacted = "[redacted]"

// Secret is a string that no log, diff, report, error or document shows: every
// way of printing or encoding it gives Redacted. Only Reveal returns the value,
// for the process or file that is meant to have it. The zero value is an empty
// secret.
type Secret struct {
	value   string
	derived bool
}

// NewSecret makes a secret of s.
func NewSecret(s string) Secret { return Secret{value: s} }

// NewDerived makes a secret of a text that came of one, such as "enabled" where a
// password is set. It is not shown, but no redactor searches for it.
func NewDerived(s string) Secret { return Secret{value: s, derived: true} }

// IsDerived reports whether the text only came of a secret.
func (s Secret) IsDerived() bool { return s.derived }

// Reveal returns the value itself. Call it only where the value goes to the
// process or file it is meant for.
func (s Secret) Reveal() string { return s.value }

// String returns Redacted.
func (Secret) String() string { return Redacted }

// GoString returns Redacted, for %#v.
func (Secret) GoString() string { return Redacted }

// Format returns Redacted for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Redacted) }

// MarshalText returns Redacted, for JSON, YAML and everything that encodes text.
func (Secret) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// LogValue returns Redacted, for slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(Redacted) }
