package manifest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/template"
)

// The file name extensions that select a template language.
const (
	extJet         = ".jet"
	extExpressions = ".templ"
)

// maxNesting limits the depth of texts that render other texts. maxExpressions limits the number of
// expressions in the outermost text and in all texts within it.
const (
	maxNesting     = 10
	maxExpressions = 100_000
)

// nesting is the depth of a scope in texts that render other texts.
type nesting struct {
	depth int
	// expressions counts the expressions of the outermost text and all texts within it.
	expressions *int
}

// namesTemplate reports whether the argument of template is a path with this extension.
func namesTemplate(text, extension string) bool {
	return strings.HasSuffix(text, extension) && !strings.Contains(text, "\n") && !template.IsJet(text) && !expression.MayHoldExpression(text)
}

// expressions renders a text of expressions. Each result must be a text, number or boolean.
func (t *templates) expressions(ctx context.Context, source template.Template) (string, error) {
	t.setDynamic()
	inner := t.nested(ctx)
	if inner.nesting.depth > maxNesting {
		return "", &template.Error{Pos: model.Position{File: source.Name}, Message: fmt.Sprintf("templates are nested more than %d levels deep", maxNesting)}
	}
	parts, at, ok := expression.Scan(source.Text)
	if !ok {
		hint := "close it with `" + expression.Closing(source.Text[at:]) + "`, or " + expression.LiteralHint(source.Text[at:])
		return "", invalidPart(source, at, hint, "the expression that begins here does not end")
	}
	var out strings.Builder
	var deferred deferredError
	for _, p := range parts {
		text := p.Literal
		if p.IsExpr {
			value, err := t.part(ctx, inner, source, p)
			var waits deferredError
			switch {
			case errors.As(err, &waits):
				deferred.waits = append(deferred.waits, waits.waits...)
			case err != nil:
				return "", err
			}
			text = value
		}
		if int64(out.Len()+len(text)) > t.opts.MaxBytes {
			return "", fmt.Errorf("%s: it gives more than %d bytes", source.Name, t.opts.MaxBytes)
		}
		out.WriteString(text)
	}
	if len(deferred.waits) > 0 {
		return "", deferred
	}

	return out.String(), nil
}

// nested returns the scope for the expressions of a text that this scope renders.
func (sc *scope) nested(ctx context.Context) *scope {
	data, _ := sc.data.(map[string]any)
	inner := sc.newScopeWith(ctx, sc.phase, data, sc.outputs, sc.text)
	inner.at, inner.quiet = sc.at, sc.quiet
	inner.nesting = nesting{sc.nesting.depth + 1, sc.nesting.expressions}
	if inner.nesting.expressions == nil {
		inner.nesting.expressions = new(int)
	}

	return inner
}

// part evaluates one expression and returns its text.
func (t *templates) part(ctx context.Context, inner *scope, source template.Template, p expression.Part) (string, error) {
	if *inner.nesting.expressions++; *inner.nesting.expressions > maxExpressions {
		return "", errTooMuchWork
	}
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	program := t.Program(p.Expr, false)
	if program.Message != "" {
		return "", invalidPart(source, p.At, program.Advice(source.Text[p.At:], inner.evaluator.Data), "the expression is not valid: "+program.Message)
	}
	inner.noteData(program.DataPaths...)
	v, secret, err := inner.evaluate(ctx, program, nil)
	t.used = t.used || secret
	var within *template.Error
	switch {
	case errors.As(err, new(deferredError)):
		return "", err
	case errors.As(err, &within):
		return "", expression.WithHint(within, expression.HintOf(err))
	case err != nil:
		return "", &template.Error{Pos: positionIn(source, p.At), Message: "the expression fails: " + expression.ExprMessage(err), Err: err}
	}
	value, err := expression.ToValue(v, model.Position{})
	switch {
	case err != nil:
		return "", &template.Error{Pos: positionIn(source, p.At), Message: "the expression " + err.Error(), Err: err}
	case !value.IsScalar():
		message := fmt.Sprintf("the expression gives %s, which is not allowed inside a text", value.Kind)
		return "", expression.WithHint(&template.Error{Pos: positionIn(source, p.At), Message: message}, insideHint(value.Kind))
	}

	return value.Text, nil
}

// invalidPart returns the error of an expression that is invalid on every node.
func invalidPart(source template.Template, at int, hint, message string) error {
	return expression.WithHint(&template.Error{Pos: positionIn(source, at), Message: message, Syntax: true}, hint)
}

// positionIn returns the line of an offset.
func positionIn(source template.Template, at int) model.Position {
	return model.Position{File: source.Name, Line: 1 + strings.Count(source.Text[:at], "\n")}
}
