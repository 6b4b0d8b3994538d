package print

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"os"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"

	"github.com/musterfleet/muster/model"
)

// NewServiceLogger returns the log of a service. Where systemd has connected standard
// error to its journal, a log of text goes there with a field for each attribute;
// anywhere else, and as JSON, it is that of NewLogger.
func NewServiceLogger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	is, err := journal.StderrIsJournalStream()
	if w != io.Writer(os.Stderr) || format == "json" || err != nil || !is {
		return NewLogger(w, format, level)
	}

	return slog.New(&journalHandler{lines: newLines(w, level), send: journal.Send})
}

// journalHandler sends records to the journal, with what a line of text has as the
// message; what the journal does not take is written as a line.
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
		return j.lines.write(r.Level, text)
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

// WithGroup returns a handler that puts a name before the keys that follow.
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

// fieldRune returns a character as names of fields may have it.
func fieldRune(r rune) rune {
	if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
		return r
	}

	return '_'
}

// priority returns the one of syslog.
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
