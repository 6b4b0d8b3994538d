package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/redact"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// Secrets are the values that a run must not show.
type secretSet struct {
	values []model.Secret
	known  map[model.Secret]bool
	redact redact.Redactor
}

// Add adds values.
func (s *secretSet) Add(values ...model.Secret) {
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

// AddOf adds the values of the resources of a graph.
func (s *secretSet) AddOf(nodes []*graph.Node) {
	var values []model.Secret
	for _, n := range nodes {
		values = append(values, n.Resource.Secrets...)
	}
	s.Add(values...)
}

// Redact returns a text without the values.
func (s *secretSet) Redact(text string) string { return s.redact.Redact(text) }

// Document returns a JSON document without the values.
func (s *secretSet) Document(text json.RawMessage) json.RawMessage {
	if len(text) == 0 || len(s.values) == 0 {
		return text
	}
	out := json.RawMessage(s.Redact(string(text)))
	if !json.Valid(out) {
		// A value was part of its braces and quotes.
		return json.RawMessage(strconv.Quote(model.Redacted))
	}

	return out
}

// Log returns a log that shows none of the values.
func (s *secretSet) Log(log *slog.Logger) *slog.Logger {
	if len(s.values) == 0 {
		return log
	}

	return slog.New(redacting{log.Handler(), s.redact})
}

// Error returns the text of an error, long values cut; of a sensitive resource without
// the output of commands.
func (s *secretSet) Error(err error, sensitive bool) string {
	if sensitive {
		return model.ShortenWords(s.Redact(resource.WithoutOutput(err)))
	}

	return model.ShortenWords(s.Redact(err.Error()))
}

// Changes returns the changes of a plan; of a sensitive resource without values.
func (s *secretSet) Changes(due resource.Plan, sensitive bool) []model.Change {
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

// Outputs returns the values that a resource gives to later ones, as secrets
// where it is sensitive.
func (s *secretSet) Outputs(values map[string]any, sensitive bool) map[string]any {
	if sensitive {
		for k, v := range values {
			values[k] = model.NewSecret(fmt.Sprint(v))
		}
	}

	return values
}

// Shown returns outputs as a report has them.
func (s *secretSet) Shown(values map[string]any) map[string]any {
	for k, v := range values {
		if text, ok := v.(string); ok {
			values[k] = s.Redact(text)
		}
	}

	return values
}

// redacting is a log handler that shows no secret.
type redacting struct {
	slog.Handler
	redact redact.Redactor
}

// Handle redacts the message, which may be a line that a command printed, and the
// attributes of a record.
func (h redacting) Handle(ctx context.Context, rec slog.Record) error {
	out := slog.NewRecord(rec.Time, rec.Level, h.redact.RedactLine(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})

	return h.Handler.Handle(ctx, out)
}

// WithAttrs keeps attributes, redacted.
func (h redacting) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}

	return redacting{h.Handler.WithAttrs(clean), h.redact}
}

// WithGroup keeps the group.
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
