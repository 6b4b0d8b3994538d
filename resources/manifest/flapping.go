package manifest

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// maxRepairs bounds what a manifest may count.
const maxRepairs = 100

// flapping reads from when on a resource flaps: off, or a mapping.
func flapping(ctx context.Context, r *resolver, v document.Value) model.Flapping {
	out := model.DefaultFlapping
	v, _ = r.Value(ctx, v)
	yes, isBool := document.ParseBool(v.Text)
	switch {
	case v.Kind == document.Null, slices.Contains(r.Failed, v.Pos):
		return out
	case v.Kind == document.String && v.Text == "off", v.IsScalar() && isBool && !yes:
		return model.Flapping{}
	case v.Kind != document.Map:
		r.Problems.Add(v.Pos, "write off, or {repairs: 5, within: 1m}", "`flapping` cannot be %s", word(v))
		return out
	}
	for _, e := range v.Entries {
		switch e.Key {
		case "repairs":
			n, err := strconv.Atoi(e.Value.Text)
			if err != nil || !e.Value.IsScalar() || n < 1 || n > maxRepairs {
				r.Problems.Add(e.Value.Pos, "write `flapping: off` for no limit", "`repairs` must be a number from 1 to %d", maxRepairs)
				continue
			}
			out.Repairs = n
		case "within":
			err := out.Within.UnmarshalText([]byte(e.Value.Text))
			if err != nil || !e.Value.IsScalar() || out.Within.Std() < time.Second || out.Within.Std() > 24*time.Hour {
				r.Problems.Add(e.Value.Pos, "for example 1m", "`within` must be a duration from 1s to 24h")
			}
		default:
			r.Problems.AddMade(func() model.Problem {
				return document.Unknown(e.Pos, "key", e.Key, " in `flapping`", []string{"repairs", "within"})
			})
		}
	}

	return out
}

// limit reads how many changes may be made a minute; 0 is any number.
func limit(ctx context.Context, r *resolver, v document.Value) int {
	v, _ = r.Value(ctx, v)
	if v.Kind == document.Null || slices.Contains(r.Failed, v.Pos) {
		return 0
	}
	n, err := strconv.Atoi(v.Text)
	const hint = "the most changes a minute, or 0 for any number"
	switch {
	case err != nil || !v.IsScalar():
		r.Problems.Add(v.Pos, hint, "`limit` must be a whole number, not %s", word(v))
	case n < 0:
		r.Problems.Add(v.Pos, hint, "`limit` must not be negative")
	}

	return n
}

// word returns a value in one word of an error.
func word(v document.Value) string {
	if v.IsScalar() {
		return strconv.Quote(v.Text)
	}

	return v.Kind.String()
}
