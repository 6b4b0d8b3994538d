package manifest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

type templates struct {
	*scope
	// judge determines whether the template uses a secret.
	judge template.Judge
	// waiting is the first missing file or output. A template may continue without it, but its
	// result is then invalid.
	waiting *deferredError
	// texts are the texts that the template read.
	texts []string
	// print returns the replacement of a printed value; nil prints the value.
	print func(string) string
	// noFacts is the error of reading facts.
	noFacts error
}

func newTemplates(sc *scope) *templates {
	return &templates{scope: sc, judge: template.Judge{Data: sc.data}}
}

// template implements the function template: a text, or a file beside the manifest. A file ending
// in .jet is a Jet template, one ending in .templ a text of expressions. Any other argument is a
// text of expressions in a manifest with the section ccm, else a Go template.
func (sc *scope) template(ctx context.Context, text string) (any, error) {
	t := newTemplates(sc)
	switch {
	case namesTemplate(text, extJet):
		return sc.jet(ctx, text, nil)
	case namesTemplate(text, extExpressions):
		isPath := func(string) bool { return false }
		source, err := t.source(expression.NameTemplate, text, isPath)
		if err != nil {
			return nil, err
		}
		return t.expressions(ctx, source)
	case sc.doc.IsCCM():
		if err := t.checkText(text); err != nil {
			return nil, err
		}
		t.warnOfFile(text)
		return t.expressions(ctx, template.Template{Name: expression.NameTemplate, Text: text})
	}
	source, err := t.source(expression.NameTemplate, text, template.IsGo)
	if err != nil {
		return nil, err
	}

	return t.render(ctx, source, func(seen template.Names) (string, error) {
		return template.Go(ctx, source, seen, t.limits())
	})
}

// warnOfFile warns about a text that names a file beside the manifest.
func (t *templates) warnOfFile(text string) {
	const longest = 255
	if t.quiet || t.forOtherNode || text == "" || len(text) > longest || strings.ContainsAny(text, "\n{$") || t.dir == "" && !filepath.IsAbs(text) {
		return
	}
	if info, err := os.Stat(t.beside(text)); err == nil && info.Mode().IsRegular() {
		hint := fmt.Sprintf("write `template(readFile('%s'))`, or rename the file to end in %s", text, extExpressions)
		t.warn("file "+text, fmt.Sprintf("`template('%s')` gives this text and does not read the file", text), hint)
	}
}

// checkText refuses to evaluate a text that may contain parts of a file that others may change: the
// document has read such a file, and the text is not a literal in the expression.
func (t *templates) checkText(text string) error {
	if t.program.HasLiteral(text) {
		return nil
	}
	if reason := t.distrusted(); reason != nil {
		return fmt.Errorf("the text may have parts of a file that readFile returned: %w", reason)
	}

	return nil
}

// jet implements the function jet: a text, or a file beside the manifest, with optional delimiters.
func (sc *scope) jet(ctx context.Context, text string, delimiters []string) (any, error) {
	t := newTemplates(sc)
	var with template.Template
	switch {
	case len(delimiters) == 2 && strings.TrimSpace(delimiters[0]) != "" && strings.TrimSpace(delimiters[1]) != "" && delimiters[0] != delimiters[1]:
		with.Left, with.Right = delimiters[0], delimiters[1]
	case len(delimiters) > 0:
		return nil, expression.WithHint(errors.New("jet takes two different delimiters"), "for example jet('motd.jet', '<<', '>>')")
	}
	source, err := t.source(expression.NameJet, text, with.HasJetAction)
	if err != nil {
		return nil, err
	}
	source.Left, source.Right = with.Left, with.Right

	return t.jet(ctx, source)
}

func (t *templates) jet(ctx context.Context, source template.Template) (string, error) {
	return t.render(ctx, source, func(seen template.Names) (string, error) {
		return template.Jet(ctx, source, seen, t.load(source.Name), t.limits())
	})
}

func (t *templates) limits() template.Limits {
	return template.Limits{Bytes: t.opts.MaxBytes, Judge: &t.judge, Print: t.print}
}

// source distinguishes a text from a path. A text contains an action or a line break.
func (t *templates) source(function, text string, isText func(string) bool) (template.Template, error) {
	if isText(text) || strings.Contains(text, "\n") || text == "" {
		return template.Template{Name: function, Text: text}, t.checkText(text)
	}
	content, err := t.read(text, evaluated)
	if err != nil {
		if expression.HintOf(err) == "" && t.waiting == nil && !errors.Is(err, paths.ErrUntrusted) {
			err = expression.WithHint(err, "a text without an action or a line break is the path of a template")
		}
		return template.Template{}, err
	}

	return template.Template{Name: t.name(text), Text: content}, nil
}

// name returns the file name in positions. A file outside the directory of the manifest has its
// full path, because its includes are relative to it.
func (t *templates) name(path string) string {
	if !filepath.IsLocal(path) && !filepath.IsAbs(path) && t.dir != "" {
		return filepath.Join(t.dir, path)
	}

	return filepath.Clean(path)
}

// read is readFile that records missing files.
func (t *templates) read(path string, use fileUse) (string, error) {
	text, err := t.scope.read(path, use)
	t.wait(err)
	t.texts = append(t.texts, text)

	return text, err
}

func (t *templates) wait(err error) {
	var deferred deferredError
	if errors.As(err, &deferred) && t.waiting == nil {
		t.waiting = &deferred
	}
}

// outputsTaken matches the references whose outputs a template uses.
var outputsTaken = regexp.MustCompile(`\boutputs\b\s*\(?\s*["'` + "`" + `]([^"'` + "`" + `]+)["'` + "`" + `]|["` + "`" + `]([^"` + "`" + `]+)["` + "`" + `]\s*\|\s*outputs\b`)

// allWaits returns everything that a template waits for. The first missing output ends the
// template, so allWaits finds the later ones in the text.
func (t *templates) allWaits() error {
	out := deferredError{slices.Clone(t.waiting.waits)}
	for _, text := range t.texts {
		for _, found := range outputsTaken.FindAllStringSubmatch(text, -1) {
			ref, err := model.ParseRef(found[1] + found[2])
			if err == nil && !slices.ContainsFunc(out.waits, func(w resource.Reference) bool { return w.Ref == ref }) {
				out.waits = append(out.waits, waitFor(expression.NameOutputs, ref).waits...)
			}
		}
	}

	return out
}

func (t *templates) load(main string) template.Load {
	return func(path string) (string, error) {
		if !filepath.IsAbs(main) {
			path = strings.TrimPrefix(path, "/")
		}
		text, err := t.read(path, evaluated)
		if err == nil && mentionsFacts(text) {
			err = t.noFacts
		}
		return text, err
	}
}

func (t *templates) render(ctx context.Context, source template.Template, render func(template.Names) (string, error)) (string, error) {
	t.setDynamic()
	t.texts = append(t.texts, source.Text)
	seen, err := t.seen(ctx, source.Text)
	if err != nil {
		return "", err
	}
	text, err := render(seen)
	t.noteTexts()
	t.used = t.used || t.judge.Found != template.Unused || t.element.holdsSecret()
	var bad *template.Error
	switch {
	case t.waiting != nil:
		return "", t.allWaits()
	case err != nil && t.phase == inData && strings.Contains(err.Error(), expression.NameData):
		return "", expression.WithHint(err, noDataHint)
	case errors.As(err, &bad) && bad.Hint != "":
		return "", expression.WithHint(err, bad.Hint)
	}

	return text, err
}

// seen returns the names of a template. An error of the facts matters only if the text mentions
// facts.
func (t *templates) seen(ctx context.Context, text string) (template.Names, error) {
	facts, err := t.getFacts(ctx)
	if err != nil && mentionsFacts(text) {
		return nil, err
	}
	t.noFacts = err
	out := t.functions()
	out[expression.NameFacts], out[expression.NameEnviron] = cloned(facts), cloned(t.known[expression.NameEnviron])
	if t.phase != inData {
		out[expression.NameData] = cloned(t.known[expression.NameData])
	}
	if t.element != nil {
		out[expression.NameEach] = cloned(t.known[expression.NameEach])
	}
	for _, name := range []string{expression.NameFacts, expression.NameData, expression.NameEnviron} {
		if v, ok := out[name]; ok {
			out[strings.ToLower(name)] = v
		}
	}

	return out, nil
}

func mentionsFacts(text string) bool { return strings.Contains(text, expression.NameFacts[1:]) }

// functions returns the functions that templates share with expressions. Functions that render
// templates are excluded.
func (t *templates) functions() template.Names {
	out := template.Names{}
	for _, name := range []string{"kvGet", "now", "registrations", "repeat", "secret"} {
		out[name] = t.known[name]
	}
	lookup := t.known["lookup"].(func(string, ...any) (any, error))
	out["lookup"] = func(key string, def ...any) (any, error) {
		v, err := lookup(key, def...)
		return cloned(v), err
	}
	read := func(path string) (any, error) { return t.read(path, asData) }
	out[expression.NameReadFile], out["file"] = read, read
	outputs := t.known[expression.NameOutputs].(func(string) (any, error))
	out[expression.NameOutputs] = func(name string) (any, error) {
		v, err := outputs(name)
		t.wait(err)
		return cloned(v), err
	}

	return out
}

// jetFile renders a Jet template beside the manifest. Printed values become tokens. It also reports
// how the template uses secrets.
func (t *templates) jetFile(ctx context.Context, path string) (string, template.Use, error) {
	t.judge.Strict, t.print = true, t.printed.print
	text, err := t.read(path, evaluated)
	if err != nil {
		return "", t.judge.Found, err
	}
	rendered, err := t.jet(ctx, template.Template{Name: t.name(path), Text: text})

	return rendered, t.judge.Found, err
}

// cloned returns a copy of a tree, which a template may change.
func cloned(v any) any { return template.Copy(v, func(leaf any) any { return leaf }) }

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
	inner.setElement(sc.element)
	inner.nesting = nesting{sc.nesting.depth + 1, sc.nesting.expressions}
	if inner.nesting.expressions == nil {
		inner.nesting.expressions = new(int)
	}

	return inner
}

func (t *templates) part(ctx context.Context, inner *scope, source template.Template, p expression.Part) (string, error) {
	if *inner.nesting.expressions++; *inner.nesting.expressions > maxExpressions {
		return "", errTooMuchWork
	}
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	program := t.Program(p.Expr, t.element.use())
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

func positionIn(source template.Template, at int) model.Position {
	return model.Position{File: source.Name, Line: 1 + strings.Count(source.Text[:at], "\n")}
}
