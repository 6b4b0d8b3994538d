package print

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
)

// NewLogger returns a log of lines of text, or of JSON.
func NewLogger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	}

	return slog.New(&lineHandler{w: w, mu: &sync.Mutex{}, level: level, colour: hasColour(w)})
}

// Level returns the level of a name that slog knows, and info for any other.
func Level(name string) slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(name))

	return level
}

// StandardLog writes what packages log with the log of the standard library, as
// Go's HTTP client does, at level debug. Quoted text is left out: a server may
// have sent it.
type StandardLog struct{ Log *slog.Logger }

// Write logs a line.
func (s StandardLog) Write(line []byte) (int, error) {
	text, _, _ := strings.Cut(string(line), `"`)
	s.Log.Debug(strings.TrimSpace(text))

	return len(line), nil
}

// lineHandler writes one line a record:
// "WARN  file#/etc/motd changed ensure=present runtime=3ms provider=posix".
type lineHandler struct {
	w      io.Writer
	mu     *sync.Mutex
	level  slog.Leveler
	colour bool
	prefix string
	attrs  string
}

// Enabled reports whether a level is logged.
func (l *lineHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= l.level.Level()
}

// Handle writes a record.
func (l *lineHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(l.paint(r.Level) + " " + Text(r.Message) + l.attrs)
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

// WithAttrs returns a handler that adds attributes to every record.
func (l *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *l
	for _, a := range attrs {
		out.attrs += l.text(a)
	}

	return &out
}

// WithGroup returns a handler that puts a name before the keys that follow.
func (l *lineHandler) WithGroup(name string) slog.Handler {
	out := *l
	out.prefix += name + "."

	return &out
}

func (l *lineHandler) text(a slog.Attr) string {
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

func (l *lineHandler) paint(level slog.Level) string {
	text := fmt.Sprintf("%-5s", level)
	switch {
	case !l.colour:
		return text
	case level >= slog.LevelError:
		return colour(text, red)
	case level >= slog.LevelWarn:
		return colour(text, yellow)
	case level < slog.LevelInfo:
		return colour(text, grey)
	default:
		return colour(text, cyan)
	}
}
