package manifest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/expr-lang/expr/types"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

const noDataHint = "values of data take Facts and Environ; combine data where they are used"

var (
	errNoData    = expression.WithHint(errors.New("`Data` is not known while the data are resolved"), noDataHint)
	errNoOutputs = expression.WithHint(errors.New("outputs are not known while the data are resolved"), "use them in the properties of a resource")
)

// missingHint returns the remedy for an unset path: the nearest known key, or the path with an
// operator such as ?? nil.
func missingHint(path string, known []string, allowed string) string {
	word := path[strings.LastIndexByte(path, '.')+1:]
	unset := "write `" + path + allowed + "` where it may be unset"
	if near := document.Nearest(word, known); near != "" {
		return "did you mean `" + near + "`? or " + unset
	}

	return unset
}

// names returns the names that the expressions of a scope may use. ctx is the context of the scope.
func (sc *scope) names(ctx context.Context) map[string]any {
	environ := make(map[string]any, len(sc.opts.Environ))
	for k, v := range sc.opts.Environ {
		environ[k] = v
	}
	look := lookup{scope: sc, environ: environ, texts: map[string][]byte{}}
	read := func(path string) (any, error) { return sc.read(path, asData) }
	out := map[string]any{
		expression.NameFacts:    map[string]any{},
		expression.NameData:     template.Reveal(sc.data, sc.reveal),
		expression.NameEnviron:  environ,
		"lookup":                func(key string, def ...any) (any, error) { return look.get(ctx, key, def) },
		expression.NameReadFile: read,
		"file":                  read,
		"kvGet":                 func(bucket, key string) (any, error) { return sc.kvGet(ctx, bucket, key) },
		"registrations": func(cluster, protocol, service, address string) (any, error) {
			return sc.evaluator.registrations(ctx, cluster, protocol, service, address)
		},
		"secret":                sc.secretOf,
		"repeat":                func(text string, count int) (string, error) { return expression.Repeat(text, count, sc.opts.MaxBytes) },
		"now":                   func() time.Time { return time.Now().Round(0) },
		expression.NameOutputs:  sc.output,
		expression.NameTemplate: func(text string) (any, error) { return sc.template(ctx, text) },
		expression.NameJet:      func(text string, delimiters ...string) (any, error) { return sc.jet(ctx, text, delimiters) },
	}
	expression.AddOrdered(out)

	return out
}

// read is readFile that records the use of a file of a sensitive resource.
func (sc *scope) read(path string, use fileUse) (string, error) {
	text, err := sc.readFile(path, use, sc.outputs != nil)
	sc.used = sc.used || len(sc.sensitive) > 0 && sc.sensitive[sc.provided()[resource.PathNeed(sc.beside(path))]]

	return text, err
}

func (sc *scope) secretOf(v any) (any, error) {
	value, err := expression.ToValue(v, model.Position{})
	if err != nil || !value.IsScalar() {
		return nil, fmt.Errorf("secret takes a text, not %s", expression.KindOf(v))
	}

	return sc.plain(model.NewSecret(value.Text)), nil
}

// output returns the outputs of a resource by name or alias. Before the run they are deferred.
func (sc *scope) output(name string) (any, error) {
	ref, err := model.ParseRef(name)
	switch {
	case err != nil:
		return nil, err
	case sc.phase == inData:
		return nil, errNoOutputs
	case sc.outputs == nil:
		return nil, waitFor(expression.NameOutputs, ref)
	}
	if real, ok := sc.aliases[ref]; ok {
		ref = real
	}
	values, ok := sc.outputs[ref]
	if !ok {
		return nil, fmt.Errorf("%s gave no outputs in this run", ref)
	}

	return sc.plain(map[string]any(values)), nil
}

// signature returns the types of the names that every scope has.
func signature() types.Map {
	out := types.Map{expression.NameStep: types.TypeOf(func(any) (any, error) { return nil, nil })}
	for name, v := range (&scope{evaluator: &evaluator{opts: &Options{}}, data: map[string]any{}}).names(context.Background()) {
		out[name] = types.TypeOf(v)
	}

	return out
}

// compile compiles an expression. withValue adds the names of @validate. Printed values in the
// expression are text.
func (w *evaluator) compile(source string, withValue bool) *expression.Program {
	known := w.signature()
	if withValue {
		known = maps.Clone(known)
		for name, f := range checks() {
			known[name] = types.TypeOf(f)
		}
		known[expression.NameValue] = types.Any
	}

	if !w.printed.in(source) {
		return expression.Compile(source, known, nil)
	}

	return expression.Compile(source, known, w.printed.text)
}
