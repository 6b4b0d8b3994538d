package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/term"
)

// newLogger makes the log of a command.
func newLogger(w io.Writer, format, level string) *slog.Logger {
	var least slog.Level
	// The flag only takes the names that slog knows.
	_ = least.UnmarshalText([]byte(level))

	return newLeveledLogger(w, format, least)
}

// newLeveledLogger makes a log whose least level may change.
func newLeveledLogger(w io.Writer, format string, least slog.Leveler) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: least}))
	}

	return slog.New(&lines{w: w, mu: &sync.Mutex{}, least: least, colour: hasColour(w)})
}

// setLog makes a log that of the process.
func (a *app) setLog(l *slog.Logger) {
	a.log = l
	// Where muster is a part of another program, as in tests, that is not ours.
	if a.stderr == os.Stderr {
		log.SetFlags(0)
		log.SetOutput(standardLog{l})
	}
}

// standardLog takes what packages write to the log of the standard library, as
// Go's HTTP client does. What they quote is left out: a server may have sent it.
type standardLog struct{ log *slog.Logger }

// Write logs a line.
func (s standardLog) Write(line []byte) (int, error) {
	text, _, _ := strings.Cut(string(line), `"`)
	s.log.Debug(strings.TrimSpace(text))

	return len(line), nil
}

// isTerminal says that somebody watches.
func isTerminal(w io.Writer) bool {
	if out, ok := w.(*output); ok {
		w = out.Writer
	}
	f, ok := w.(*os.File)

	return ok && term.IsTerminal(int(f.Fd()))
}

// hasColour says that colours are wanted: on a terminal, and NO_COLOR is not set.
func hasColour(w io.Writer) bool { return isTerminal(w) && os.Getenv("NO_COLOR") == "" }

// lines is a log handler that writes one line a record, as spec/formats.md has
// it: "WARN  file#/etc/motd changed ensure=present runtime=3ms provider=posix".
type lines struct {
	w      io.Writer
	mu     *sync.Mutex
	least  slog.Leveler
	colour bool
	prefix string
	attrs  string
}

// Enabled says whether a level is logged.
func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= l.least.Level() }

// Handle writes a record.
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(l.paint(r.Level, fmt.Sprintf("%-5s", r.Level)))
	b.WriteString(" " + printable(r.Message) + l.attrs)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(l.text(a))
		return true
	})
	b.WriteByte('\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.WriteString(l.w, b.String())

	return err
}

// WithAttrs keeps attributes for every record.
func (l *lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *l
	for _, a := range attrs {
		out.attrs += l.text(a)
	}

	return &out
}

// WithGroup puts a name before the keys that follow.
func (l *lines) WithGroup(name string) slog.Handler {
	out := *l
	out.prefix += name + "."

	return &out
}

func (l *lines) text(a slog.Attr) string {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		var b strings.Builder
		inner := *l
		inner.prefix += a.Key + "."
		for _, g := range value.Group() {
			b.WriteString(inner.text(g))
		}
		return b.String()
	}
	s := value.String()
	if s == "" || strings.ContainsAny(s, " \t\n\"=") || strconv.Quote(s) != `"`+s+`"` {
		s = strconv.Quote(s)
	}

	return " " + l.prefix + a.Key + "=" + s
}

func (l *lines) paint(level slog.Level, s string) string {
	if !l.colour {
		return s
	}
	code := "36"
	switch {
	case level >= slog.LevelError:
		code = "31"
	case level >= slog.LevelWarn:
		code = "33"
	case level < slog.LevelInfo:
		code = "90"
	}

	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
