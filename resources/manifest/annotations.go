package manifest

import (
	"context"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/template"
)

// annotationChecks checks values by the comments of a document.
type annotationChecks struct {
	lines  [][]byte
	behind trailingComments
	scope  *scope
	data   map[string]any
	out    model.Problems
}

// checkAnnotations checks the final data by the comments above the keys of data and of the used
// overrides.
func checkAnnotations(ctx context.Context, w *evaluator, data map[string]any, taken []override) model.Problems {
	lines := w.doc.Lines()
	if lines == nil {
		return nil
	}
	a := annotationChecks{data: data, lines: lines, behind: trailingComments{lines: lines}, scope: w.newScope(ctx, inResources, data, nil)}
	a.value(ctx, w.doc.Data, nil, nil)
	for _, o := range taken {
		a.behind = trailingComments{lines: lines}
		a.value(ctx, o.values, nil, o.below)
	}

	return a.out
}

// value checks a value at a path of the data. below is the value that it was merged into, or nil.
func (a *annotationChecks) value(ctx context.Context, v document.Value, path []string, below any) {
	for _, e := range v.Entries {
		at := append(path[:len(path):len(path)], e.Key)
		for _, comment := range a.comments(e.Pos) {
			a.check(ctx, e.Pos, at, comment)
		}
		under, _ := expression.Find(below, []string{e.Key})
		a.value(ctx, e.Value, at, under)
	}
	// A merge appends the items of this list to the list below.
	appended, _ := below.([]any)
	for i, item := range v.Items {
		at := append(path[:len(path):len(path)], strconv.Itoa(len(appended)+i))
		// The list that replaced this one may be shorter.
		if _, ok := expression.Find(a.data, at); ok {
			a.value(ctx, item, at, nil)
		}
	}
}

// comments returns the comments above a key that begin in its column, and the comments after it.
func (a *annotationChecks) comments(key model.Position) []string {
	var out []string
	for _, c := range commentsAbove(a.lines, key) {
		if c.pos.Column == key.Column {
			out = append(out, c.text)
		}
	}
	for _, c := range a.behind.key(key) {
		out = append(out, c.text)
	}

	return out
}

func (a *annotationChecks) check(ctx context.Context, pos model.Position, path []string, comment string) {
	annotation, rest := annotationOf(comment)
	value, known := expression.Find(a.data, path)
	name := strings.Join(path, ".")
	switch annotation {
	case annotationRequire:
		if !known || isUnset(value) {
			a.out.Add(pos, "set it in data, an override or with --data", "`%s` is required and has no value", name)
		}
		if strings.HasPrefix(rest, annotationValidate) {
			a.check(ctx, pos, path, rest) // both checks are in one comment
		}
	case annotationValidate:
		program := a.scope.Program(rest, true)
		if program.Message != "" {
			a.out.Add(pos, program.Hint, "the expression of @validate is not valid: %s", program.Message)
			return
		}
		if v, err := expression.ToValue(value, pos); err == nil && checksText(program) && (v.Kind == document.Null || !v.IsScalar()) {
			return
		}
		a.validate(ctx, pos, program, name, value)
	}
}

func (a *annotationChecks) validate(ctx context.Context, pos model.Position, p *expression.Program, name string, value any) {
	source := p.Source().String()
	result, _, f := a.scope.run(ctx, p, withChecks(template.Reveal(value, a.scope.reveal)))
	shown := ""
	if v, err := expression.ToValue(value, pos); err == nil && v.IsScalar() && !v.Secret {
		shown = " " + v.Text
	}
	ok, isBool := result.(bool)
	switch {
	case f != nil && template.Holds(value):
		a.out.Add(pos, "", "the value of `%s` cannot be checked by `%s`", name, source)
	case f != nil:
		a.out.Add(pos, f.hint, "the value of `%s` cannot be checked by `%s`: %s", name, source, f.message)
	case !isBool:
		a.out.Add(pos, "write a comparison, for example value > 0", "the expression of @validate gives %s, not true or false", expression.KindOf(result))
	case !ok:
		a.out.Add(pos, "", "the value%s of `%s` is not valid: `%s` is false", shown, name, source)
	}
}

// isUnset reports whether a value is null or an empty text.
func isUnset(v any) bool {
	value, err := expression.ToValue(v, model.Position{})

	return err == nil && value.Text == "" && (value.Kind == document.Null || value.IsScalar())
}
