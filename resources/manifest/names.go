package manifest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// names are what expressions may use, by name.
type names map[string]any

// hintedError is an error with what to do about it.
type hintedError struct {
	error
	hint string
}

func (e hintedError) Unwrap() error { return e.error }

var errNoData = errors.New("`Data` is not known while the data are resolved")

var errNoOutputs = errors.New("outputs are not known while the data are resolved")

const noOutputsHint = "use them in the properties of a resource"

const noDataHint = "values of data take Facts and Environ; combine data where they are used"

func missingHint(path string, known []string) string {
	word := path[strings.LastIndexByte(path, '.')+1:]
	unset := "write `" + path + " ?? nil` where it may be unset"
	if near := document.Nearest(word, known); near != "" {
		return "did you mean `" + near + "`? or " + unset
	}

	return unset
}

// names makes the names for one scope. ctx is that of the scope, which does not outlive it.
func (s *session) names(ctx context.Context, p phase, data any, outputs map[model.Ref]any, e *evaluation, masked bool) names {
	environ := make(map[string]any, len(s.loader.opts.Environ))
	for k, v := range s.loader.opts.Environ {
		environ[k] = v
	}
	look := lookup{session: s, phase: p, data: data, environ: environ}
	read := func(path string) (any, error) { return s.readFile(path, outputs != nil) }
	var out names
	out = names{
		nameFacts:   map[string]any{},
		nameData:    data,
		nameEnviron: environ,
		"lookup":    func(key string, def ...any) (any, error) { return look.get(ctx, key, def) },
		"readFile":  read,
		"file":      read,
		"kvGet":     func(bucket, key string) (any, error) { return s.kvGet(ctx, bucket, key) },
		"registrations": func(cluster, protocol, service, address string) (any, error) {
			return s.registrations(ctx, cluster, protocol, service, address)
		},
		"secret":     func(v any) (any, error) { return s.secretOf(v, e, masked) },
		"repeat":     func(text string, count int) (string, error) { return repeat(text, count, s.loader.opts.MaxBytes) },
		"now":        e.now,
		nameOutputs:  func(name string) (any, error) { return s.output(p, outputs, name) },
		nameTemplate: func(text string) (any, error) { return s.template(ctx, p, out, e, text) },
		nameJet:      func(text string) (any, error) { return s.jet(ctx, p, out, e, text) },
	}
	out.addOrdered()

	return out
}

func (s *session) secretOf(v any, e *evaluation, masked bool) (any, error) {
	e.made = true
	value, err := toValue(v, model.Position{})
	switch {
	case err != nil || !value.IsScalar():
		return nil, fmt.Errorf("secret takes a text, not %s", kindOf(v))
	case masked:
		return maskText, nil
	default:
		s.learn(model.NewSecret(value.Text))
		return value.Text, nil
	}
}

// output gives the outputs of a resource by its name or alias. While nothing is
// running they are late.
func (s *session) output(p phase, outputs map[model.Ref]any, name string) (any, error) {
	ref, err := model.ParseRef(name)
	switch {
	case err != nil:
		return nil, err
	case p == inData:
		return nil, hintedError{errNoOutputs, noOutputsHint}
	case outputs == nil:
		return nil, lateError{ref: ref, outputs: true}
	}
	if real, ok := s.aliases[ref]; ok {
		ref = real
	}
	values, ok := outputs[ref]
	if !ok {
		return nil, fmt.Errorf("%s gave no outputs in this run", ref)
	}

	return values, nil
}
