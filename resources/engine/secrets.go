package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/redact"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// secretSet is the values that a run must not show.
type secretSet struct {
	values []model.Secret
	known  map[model.Secret]bool
	redact redact.Redactor
}

func (s *secretSet) add(values ...model.Secret) {
	before := len(s.values)
	for _, v := range values {
		if !v.IsDerived() && !s.known[v] {
			if s.known == nil {
				s.known = map[model.Secret]bool{}
			}
			s.known[v] = true
			s.values = append(s.values, v)
		}
	}
	if len(s.values) > before {
		s.redact = redact.New(s.values...)
	}
}

func (s *secretSet) addOf(nodes []*plan.Node) {
	var values []model.Secret
	for _, n := range nodes {
		values = append(values, n.Resource.Secrets...)
	}
	s.add(values...)
}

// Redact redacts a text.
func (s *secretSet) Redact(text string) string { return s.redact.Redact(text) }

func (s *secretSet) document(text json.RawMessage) json.RawMessage {
	if len(text) == 0 || len(s.values) == 0 {
		return text
	}
	out := json.RawMessage(s.Redact(string(text)))
	if !json.Valid(out) {
		// A secret contains JSON syntax of the document.
		return json.RawMessage(strconv.Quote(model.Redacted))
	}

	return out
}

// log returns a log that redacts the values.
func (s *secretSet) log(log *slog.Logger) *slog.Logger {
	if len(s.values) == 0 {
		return log
	}

	return slog.New(redacting{log.Handler(), s.redact})
}

// Error returns the redacted text of an error with shortened values. For a sensitive resource it
// omits the output of commands.
func (s *secretSet) Error(err error, sensitive bool) string {
	if sensitive {
		return model.ShortenWords(s.Redact(resource.WithoutOutput(err)))
	}

	return model.ShortenWords(s.Redact(err.Error()))
}

// changes returns the redacted changes of a plan. For a sensitive resource it omits all values.
func (s *secretSet) changes(due resource.Plan, sensitive bool) []model.Change {
	out := make([]model.Change, len(due.Changes))
	for i, c := range due.Changes {
		c.Message = s.Redact(c.Message)
		if sensitive {
			out[i] = model.Change{Action: c.Action, Message: c.Message, Property: c.Property}
			continue
		}
		c.Diff, c.From, c.To = s.Redact(c.Diff), s.Redact(c.From), s.Redact(c.To)
		out[i] = c
	}

	return out
}

// outputs returns the outputs of a resource. They are secrets if the resource is sensitive.
func (s *secretSet) outputs(values map[string]any, sensitive bool) map[string]any {
	if sensitive {
		for k, v := range values {
			values[k] = model.NewSecret(fmt.Sprint(v))
		}
	}

	return values
}

func (s *secretSet) shown(values map[string]any) map[string]any {
	for k, v := range values {
		if text, ok := v.(string); ok {
			values[k] = s.Redact(text)
		}
	}

	return values
}

type redacting struct {
	slog.Handler
	redact redact.Redactor
}

// Handle redacts the message and the attributes of a record. The message may be the output of a
// command.
func (h redacting) Handle(ctx context.Context, rec slog.Record) error {
	out := slog.NewRecord(rec.Time, rec.Level, h.redact.RedactLine(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})

	return h.Handler.Handle(ctx, out)
}

// WithAttrs redacts attributes.
func (h redacting) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}

	return redacting{h.Handler.WithAttrs(clean), h.redact}
}

// WithGroup returns a handler with the group.
func (h redacting) WithGroup(name string) slog.Handler {
	return redacting{h.Handler.WithGroup(name), h.redact}
}

func (h redacting) attr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString, slog.KindAny:
		return slog.String(a.Key, h.redact.Redact(v.String()))
	case slog.KindGroup:
		clean := make([]any, 0, len(v.Group()))
		for _, inner := range v.Group() {
			clean = append(clean, h.attr(inner))
		}
		return slog.Group(a.Key, clean...)
	default:
		return a
	}
}
