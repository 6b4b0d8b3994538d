package manifest

import (
	"context"
	"strings"

	"github.com/musterfleet/muster/resources/resource"
)

// excluded evaluates the control property: whether it excludes the resource,
// and why. ok is false when an expression of it failed.
func (r *resolver) excluded(ctx context.Context, properties resource.Value) (reason string, ok bool) {
	control, has := properties.Get(keyControl)
	if !has || control.Kind != resource.Map {
		return "", true
	}
	ok = true
	for _, e := range control.Entries {
		if e.Key != "if" && e.Key != "unless" || !e.Value.IsScalar() {
			continue
		}
		yes, valid := r.condition(ctx, e)
		switch {
		case !valid:
			ok = false
		case e.Key == "if" && !yes && reason == "":
			reason = "control.if is false: " + bare(e.Value.Text)
		case e.Key == "unless" && yes && reason == "":
			reason = "control.unless is true: " + bare(e.Value.Text)
		}
	}

	return reason, ok
}

// bare takes the braces off a condition, which may be written with or without.
func bare(text string) string {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "${") && !strings.HasPrefix(text, "{{") {
		return text
	}
	if length, ok := expressionLength(text[2:], closing(text)); ok && 2+length+len(closing(text)) == len(text) {
		return strings.TrimSpace(text[2 : 2+length])
	}

	return text
}

func (r *resolver) condition(ctx context.Context, e resource.Entry) (yes, valid bool) {
	s := r.scope.session
	p := s.program(bare(e.Value.Text), false)
	if p.message != "" {
		r.problems.Add(e.Value.Pos, p.hint, "`control.%s` is not a valid expression: %s", e.Key, p.message)
		return false, false
	}
	if r.scope.broken && (p.names[nameData] || p.names["lookup"]) {
		return false, false
	}
	out, f := r.scope.value(ctx, p, e.Value.Pos)
	switch {
	case f != nil && f.known:
	case f != nil && f.late != nil:
		r.problems.Add(e.Value.Pos, "use a guard of the type, such as `onlyif`", "`control.%s` must be known before the run", e.Key)
	case f != nil && s.tolerates():
	case f != nil:
		r.problems.Add(e.Value.Pos, f.hint, "`control.%s` fails: %s", e.Key, f.message)
	case out.Kind != resource.Bool:
		r.problems.Add(e.Value.Pos, "write a comparison, for example Facts.host.info.os == 'linux'", "`control.%s` must be true or false, not %s", e.Key, out.Kind)
	default:
		return out.Text == "true", true
	}

	return false, false
}
