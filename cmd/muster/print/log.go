package print

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync"

	"github.com/coreos/go-systemd/v22/journal"

	"github.com/musterfleet/muster/model"
)

// NewLogger returns a log of lines of text, or of JSON.
func NewLogger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(visible{w}, &slog.HandlerOptions{Level: level}))
	}

	return slog.New(newLines(w, level))
}

// newLines returns a handler that writes lines of text.
func newLines(w io.Writer, level slog.Leveler) *lineHandler {
	attrs := &bytes.Buffer{}
	inner := slog.NewTextHandler(attrs, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutBuiltIn})

	return &lineHandler{Handler: inner, attrs: attrs, w: w, mu: &sync.Mutex{}, colour: hasColour(w)}
}

// visible escapes control characters that JSON does not escape.
type visible struct{ io.Writer }

// Write writes a line.
func (v visible) Write(line []byte) (int, error) {
	if _, err := io.WriteString(v.Writer, Visible(string(line))); err != nil {
		return 0, err
	}

	return len(line), nil
}

// Level returns the level with a name, and info for an unknown name.
func Level(name string) slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(name))

	return level
}

// StandardLog logs the lines of the standard log at level debug, for example from Go's HTTP client. It omits
// quoted text, which may come from a server.
type StandardLog struct{ Log *slog.Logger }

// Write logs a line.
func (s StandardLog) Write(line []byte) (int, error) {
	text, _, _ := strings.Cut(string(line), `"`)
	s.Log.Debug(strings.TrimSpace(text))

	return len(line), nil
}

// withoutBuiltIn omits the attributes at the beginning of a line.
func withoutBuiltIn(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
		return slog.Attr{}
	}

	return a
}

// lineHandler writes one line for each record:
// "WARN  file#/etc/motd changed ensure=present runtime=3ms provider=posix".
type lineHandler struct {
	// Handler writes the attributes of a record to attrs.
	slog.Handler
	attrs  *bytes.Buffer
	w      io.Writer
	mu     *sync.Mutex
	colour bool
	// timed lines begin with the time.
	timed bool
}

// Handle writes a record.
func (l *lineHandler) Handle(ctx context.Context, r slog.Record) error {
	text, err := l.text(ctx, r)
	if err != nil {
		return err
	}

	return l.write(r, text)
}

// text returns the line of a record without its level.
func (l *lineHandler) text(ctx context.Context, r slog.Record) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attrs.Reset()
	if err := l.Handler.Handle(ctx, r); err != nil {
		return "", err
	}

	return strings.TrimRight(Text(r.Message)+" "+strings.TrimSuffix(l.attrs.String(), "\n"), " "), nil
}

// write writes a line.
func (l *lineHandler) write(r slog.Record, text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.paint(r.Level) + " " + text + "\n"
	if l.timed {
		line = r.Time.Format("2006-01-02T15:04:05.000Z07:00") + " " + line
	}
	_, err := io.WriteString(l.w, line)

	return err
}

// WithAttrs returns a handler that adds attributes to every record.
func (l *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *l
	out.Handler = l.Handler.WithAttrs(attrs)

	return &out
}

// WithGroup returns a handler that prefixes later keys with a name.
func (l *lineHandler) WithGroup(name string) slog.Handler {
	out := *l
	out.Handler = l.Handler.WithGroup(name)

	return &out
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

// NewServiceLogger returns the log of a service. If standard error is the journal of systemd, text records go
// to the journal with a field for each attribute. Otherwise it returns a logger like NewLogger, and lines of
// text begin with the time.
func NewServiceLogger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	is, err := journal.StderrIsJournalStream()
	lines := newLines(w, level)
	switch {
	case format == "json":
		return NewLogger(w, format, level)
	case w != io.Writer(os.Stderr) || err != nil || !is:
		lines.timed = true
		return slog.New(lines)
	default:
		return slog.New(&journalHandler{lines: lines, send: journal.Send})
	}
}

// journalHandler sends records to the journal. The message has the text of a log line. It writes a line for a
// record that the journal rejects.
type journalHandler struct {
	lines *lineHandler
	send  func(message string, priority journal.Priority, fields map[string]string) error
	// fields are the fields of With. group is the prefix of later fields.
	fields map[string]string
	group  string
}

// Enabled reports whether records of a level are sent.
func (j *journalHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return j.lines.Enabled(ctx, l)
}

// Handle sends a record.
func (j *journalHandler) Handle(ctx context.Context, r slog.Record) error {
	text, err := j.lines.text(ctx, r)
	if err != nil {
		return err
	}
	fields := map[string]string{"SYSLOG_IDENTIFIER": "muster"}
	maps.Copy(fields, j.fields)
	if ref, ok := model.RefOf(ctx); ok {
		fields["MUSTER_RESOURCE"] = ref.String()
	}
	r.Attrs(func(a slog.Attr) bool {
		addField(fields, j.group, a)
		return true
	})
	if err := j.send(text, priority(r.Level), fields); err != nil {
		return j.lines.write(r, text)
	}

	return nil
}

// WithAttrs returns a handler that adds attributes to every record.
func (j *journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *j
	out.lines = j.lines.WithAttrs(attrs).(*lineHandler)
	out.fields = maps.Clone(j.fields)
	if out.fields == nil {
		out.fields = map[string]string{}
	}
	for _, a := range attrs {
		addField(out.fields, j.group, a)
	}

	return &out
}

// WithGroup returns a handler that prefixes later keys with a name.
func (j *journalHandler) WithGroup(name string) slog.Handler {
	out := *j
	out.lines, out.group = j.lines.WithGroup(name).(*lineHandler), j.group+name+"_"

	return &out
}

// addField adds the field of an attribute, or the fields of a group.
func addField(fields map[string]string, prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "_"
		}
		for _, inner := range v.Group() {
			addField(fields, prefix, inner)
		}
		return
	}
	fields["MUSTER_"+strings.Map(fieldRune, strings.ToUpper(prefix+a.Key))] = v.String()
}

// fieldRune replaces characters that are invalid in names of fields.
func fieldRune(r rune) rune {
	if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
		return r
	}

	return '_'
}

// priority returns the syslog priority of a level.
func priority(l slog.Level) journal.Priority {
	switch {
	case l >= slog.LevelError:
		return journal.PriErr
	case l >= slog.LevelWarn:
		return journal.PriWarning
	case l >= slog.LevelInfo:
		return journal.PriInfo
	default:
		return journal.PriDebug
	}
}
