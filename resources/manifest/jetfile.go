package manifest

import (
	"context"
	"errors"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/eval"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/manifest/syntax"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// rendered returns the list of resources that a Jet template renders. What is
// wrong with the template is reported at its line there, what is wrong with the
// list at its place in what was rendered. open reports whether not all of it is known.
func (b *build) rendered(ctx context.Context, file resource.Value) (items []resource.Value, open bool) {
	r := eval.Resolver{Scope: b.scope}
	path, _ := r.Value(ctx, file)
	if len(r.Failed) == 0 && (path.Late || path.Secret || !path.IsScalar()) {
		r.Problems.Add(file.Pos, "for example resources_jet_file: resources.jet", "`%s` must be the path of a template, known before the run", syntax.KeyJetFile)
	}
	b.problems = append(b.problems, r.Problems...)
	if len(r.Problems)+len(r.Failed) > 0 {
		return nil, true
	}
	hidden := newTokens()
	list := b.session.ScopeWith(ctx, eval.InResources, b.out.Data, nil, hidden.hide)
	value, use, ok := b.list(ctx, list, path)
	m := secretMarks{file: path.Text, tokens: hidden}
	if ok && use == template.Mixed {
		m.problem(model.Position{File: renderedName(path.Text), Line: 1, Column: 1})
	} else {
		m.mark(&value)
	}
	b.problems = append(b.problems, m.problems...)

	return value.Items, !ok || len(m.problems) > 0
}

// renderedName is what the places of a rendered list are called.
func renderedName(path string) string { return path + " (rendered)" }

// list renders the list and reports what is wrong with it. Where the node is
// not there to be asked, that its values are missing is no problem.
func (b *build) list(ctx context.Context, seen *eval.Scope, path resource.Value) (list resource.Value, use template.Use, ok bool) {
	text, use, err := seen.JetFile(ctx, path.Text)
	if err == nil {
		list, err = readList(path.Text, text, b.session.Opts.MaxBytes)
	}
	var problems model.Problems
	var bad *template.Error
	switch invalid := errors.As(err, &bad) && bad.Syntax; {
	case err == nil:
		// What rests on data that are not all known may say anything.
		return list, use, !b.scope.Broken
	case errors.As(err, &problems):
		if !b.scope.Broken {
			b.problems = append(b.problems, problems...)
		}
	case errors.As(err, new(eval.LateError)):
		b.problems.Add(path.Pos, "", "`%s` must be known before the run: %s", syntax.KeyJetFile, err)
	case !invalid && (b.scope.Broken || b.session.Tolerates()):
	case bad != nil:
		b.problems.Add(bad.Pos, expression.HintOf(err), "%s", bad.Message)
	default:
		f := b.session.Failed(err)
		b.problems.Add(path.Pos, f.Hint, "`%s`: %s", syntax.KeyJetFile, f.Message)
	}

	return resource.Value{}, use, false
}

// readList reads a rendered list. The error is model.Problems.
func readList(path, rendered string, limit int64) (resource.Value, error) {
	value, problems := document.Read(renderedName(path), []byte(rendered), limit)
	if len(problems) == 0 && value.Kind != resource.List && value.Kind != resource.Null {
		problems.Add(value.Pos, "begin it with `- file:`", "%s must render a list of resources, not %s", path, value.Kind)
	}

	return value, problems.Err()
}

// secretMarks puts secrets into a list where their tokens are, and marks them.
type secretMarks struct {
	file     string
	tokens   *tokens
	problems model.Problems
}

// mark reveals the tokens in v. A secret may hold what looks like an expression, and is none.
func (m *secretMarks) mark(v *resource.Value) {
	if v.IsScalar() && strings.Contains(v.Text, m.tokens.nonce) {
		isExpression := expression.MayHoldExpression(v.Text)
		v.Secret, v.Derived, v.Kind, v.Text = true, true, resource.String, m.tokens.reveal(v.Text)
		if !isExpression {
			v.Text = expression.LiteralText(v.Text)
		}
	}
	for i := range v.Items {
		m.mark(&v.Items[i])
	}
	for i := range v.Entries {
		if strings.Contains(v.Entries[i].Key, m.tokens.nonce) {
			m.problem(v.Entries[i].Pos)
		}
		m.mark(&v.Entries[i].Value)
	}
}

func (m *secretMarks) problem(pos model.Position) {
	m.problems.Add(pos, "print secrets as they are, in the values of properties", "what %s renders here depends on a secret, and names and keys are shown", m.file)
}
