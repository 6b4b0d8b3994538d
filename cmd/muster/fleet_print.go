package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/choria-io/fisk"
	"golang.org/x/term"

	"github.com/musterfleet/muster/model"
)

// format is how a command prints: for people, or as a document.
type format struct{ json, yaml bool }

func (f *format) add(cmd *fisk.CmdClause) {
	cmd.Flag("json", "Print as JSON").UnNegatableBoolVar(&f.json)
	cmd.Flag("yaml", "Print as YAML").UnNegatableBoolVar(&f.yaml)
}

// isDocument says that a document is asked for.
func (f *format) isDocument() bool { return f.json || f.yaml }

// table prints rows in columns under a header.
func (a *app) table(header []string, rows [][]string) {
	for _, row := range rows {
		for i := range row {
			row[i] = printable(row[i])
		}
	}
	width := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range append([][]string{header}, rows...) {
		var b strings.Builder
		for i, cell := range row {
			padding := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if n > 0 {
				cell = a.paintWord(cell)
			}
			b.WriteString(cell + padding + "  ")
		}
		fmt.Fprintln(a.stdout, strings.TrimRight(b.String(), " "))
	}
}

// paintWord colours the words of outcomes.
func (a *app) paintWord(word string) string {
	if !hasColour(a.stdout) {
		return word
	}
	code := ""
	switch model.Outcome(word) {
	case model.OutcomeFailed, model.OutcomeRefused, model.OutcomeUnmet, "silent":
		code = "31"
	case model.OutcomeChanged, model.OutcomeRefreshed, model.OutcomeNoop, model.OutcomeNotRun, "late":
		code = "33"
	case model.OutcomeStable, "arrived":
		code = "32"
	default:
		return word
	}

	return "\x1b[" + code + "m" + word + "\x1b[0m"
}

// age says how long ago something was.
func age(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	switch d := max(now.Sub(t), 0); {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// shortDigest is enough of a digest to tell it from others.
func shortDigest(digest string) string {
	const enough = len(model.DigestPrefix) + 12
	if len(digest) <= enough {
		return digest
	}

	return digest[:enough]
}

// oneLine gives a text on one line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// plural gives a number with its word.
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}

	return fmt.Sprintf("%d %ss", n, word)
}

// progress is a line on standard error that is overwritten by the next, when
// somebody watches; else it writes nothing.
type progress struct {
	w     io.Writer
	width int
	shown bool
}

func (a *app) progress() *progress {
	f, ok := a.stderr.(*os.File)
	if !ok || !isTerminal(a.stderr) {
		return &progress{}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}

	return &progress{w: f, width: width}
}

func (p *progress) show(format string, args ...any) {
	if p.w == nil {
		return
	}
	text := []rune(fmt.Sprintf(format, args...))
	fmt.Fprintf(p.w, "\r\x1b[K%s", string(text[:min(len(text), p.width-1)]))
	p.shown = true
}

// clear takes the line away, before something else is printed.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
