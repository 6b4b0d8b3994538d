package manifest

import (
	"context"
	"errors"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// keyJetFile is the setting that names the template of the resource list.
const keyJetFile = "resources_jet_file"

// rendered gives the list of resources that a Jet template renders. What is
// wrong with the template is told at its place there, what is wrong with the
// list at its place in what was rendered. open says that not all of it is known.
func (b *build) rendered(ctx context.Context, file resource.Value) (items []resource.Value, open bool) {
	r := resolver{scope: b.scope}
	path, _ := r.value(ctx, file)
	if len(r.failed) == 0 && (path.Late || path.Secret || !path.IsScalar()) {
		r.problems.Add(file.Pos, "for example resources_jet_file: resources.jet", "`%s` must be the path of a template, known before the run", keyJetFile)
	}
	b.problems = append(b.problems, r.problems...)
	if len(r.problems)+len(r.failed) > 0 {
		return nil, true
	}
	b.scope.begin()
	value, ok := b.list(ctx, path, b.scope.plain)
	if !ok || !b.scope.hasSecrets() && !b.scope.made {
		return value.Items, !ok
	}
	b.scope.again.Second()
	// The same template again, with the secrets masked, tells where they are.
	masked, err := b.jetList(ctx, path, b.scope.masked)
	if err != nil {
		b.problems.Add(path.Pos, "use the function in an expression of a property instead", "%s cannot be rendered without its secrets", path.Text)
		return nil, true
	}
	m := secretMarks{file: path.Text}
	m.mark(&value, masked)
	b.problems = append(b.problems, m.problems...)

	return value.Items, len(m.problems) > 0
}

// list renders the list and reports what is wrong with it. Where the node is
// not there to be asked, that its values are missing is no problem.
func (b *build) list(ctx context.Context, path resource.Value, known names) (resource.Value, bool) {
	list, err := b.jetList(ctx, path, known)
	var problems model.Problems
	var bad *template.Error
	var hinted hintedError
	switch syntax := errors.As(err, &bad) && bad.Syntax; {
	case err == nil:
		// What rests on data that are not all known may say anything.
		return list, !b.scope.broken
	case errors.As(err, &problems):
		if !b.scope.broken {
			b.problems = append(b.problems, problems...)
		}
	case errors.As(err, new(lateError)):
		b.problems.Add(path.Pos, "", "`%s` must be known before the run: %s", keyJetFile, err)
	case !syntax && (b.scope.broken || b.session.tolerates()):
	case bad != nil:
		errors.As(err, &hinted)
		b.problems.Add(bad.Pos, hinted.hint, "%s", bad.Message)
	default:
		f := b.session.failed(err)
		b.problems.Add(path.Pos, f.hint, "`%s`: %s", keyJetFile, f.message)
	}

	return resource.Value{}, false
}

// jetList renders the template and reads the list. Its errors are those of the
// template, and model.Problems.
func (b *build) jetList(ctx context.Context, path resource.Value, known names) (resource.Value, error) {
	t := templates{session: b.session, phase: inResources, known: known, evaluation: b.scope.evaluation}
	text, err := t.read(path.Text)
	if err != nil {
		return resource.Value{}, err
	}
	rendered, err := t.jet(ctx, template.Template{Name: t.name(path.Text), Text: text})
	if err != nil {
		return resource.Value{}, err
	}
	value, problems := document.Read(path.Text+" (rendered)", []byte(rendered), b.session.loader.opts.MaxBytes)
	if len(problems) == 0 && value.Kind != resource.List && value.Kind != resource.Null {
		problems.Add(value.Pos, "begin it with `- file:`", "%s must render a list of resources, not %s", path.Text, value.Kind)
	}
	redactor := model.NewRedactor(b.session.learnt()...)
	for i := range problems {
		problems[i].Message, problems[i].Hint = redactor.Redact(problems[i].Message), redactor.Redact(problems[i].Hint)
	}

	return value, problems.Err()
}

// secretMarks marks what depends on a secret in a list that was rendered twice.
type secretMarks struct {
	file     string
	problems model.Problems
}

// mark marks every scalar of v that differs from its place in masked. A
// secret may hold what looks like an expression, and is none.
func (m *secretMarks) mark(v *resource.Value, masked resource.Value) {
	switch {
	case v.Kind == resource.Map && masked.Kind == v.Kind && len(v.Entries) == len(masked.Entries):
		for i := range v.Entries {
			if v.Entries[i].Key != masked.Entries[i].Key {
				m.problem(v.Entries[i].Pos)
				continue
			}
			m.mark(&v.Entries[i].Value, masked.Entries[i].Value)
		}
	case v.Kind == resource.List && masked.Kind == v.Kind && len(v.Items) == len(masked.Items):
		for i := range v.Items {
			m.mark(&v.Items[i], masked.Items[i])
		}
	case v.IsScalar() && masked.IsScalar():
		v.Secret = v.Text != masked.Text
		if v.Secret && !mayHoldExpression(masked.Text) {
			v.Text = literalText(v.Text)
		}
	case v.Kind != masked.Kind || v.Kind != resource.Null:
		m.problem(v.Pos)
	}
}

func (m *secretMarks) problem(pos model.Position) {
	m.problems.Add(pos, "use secrets in the values of properties only", "what %s renders here depends on a secret, and names and keys are shown", m.file)
}
