package manifest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/expr-lang/expr/types"
	"github.com/tidwall/gjson"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
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
	sc.used = sc.used || sc.common.sensitive[sc.common.paths[resource.PathNeed(sc.beside(path))]]

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
	if real, ok := sc.common.aliases[ref]; ok {
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

// compile compiles an expression. Printed values in the expression are text.
func (w *evaluator) compile(source string, of use) *expression.Program {
	known := w.signature()
	switch of {
	case ofElement:
		known = maps.Clone(known)
		known[expression.NameEach] = types.Any
	case ofValue:
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

// lookup finds values by path under facts, data and environ.
type lookup struct {
	scope   *scope
	environ any
	// texts are the JSON of each root, encoded on first use.
	texts map[string][]byte
}

// The roots of a path.
const (
	rootFacts   = "facts"
	rootData    = "data"
	rootEnviron = "environ"
)

// get implements the function lookup. It returns the value at the path, else the default, else an
// error.
func (l *lookup) get(ctx context.Context, path string, def []any) (any, error) {
	if len(def) > 1 {
		return nil, errors.New("lookup takes a path and one default")
	}
	name, rest, _ := strings.Cut(path, ".")
	root, err := l.root(ctx, name)
	if err != nil {
		return nil, err
	}
	if rest == "" {
		return l.scope.plain(root), nil
	}
	if v, ok := expression.Find(root, strings.Split(rest, ".")); ok && (v != nil || len(def) == 0) {
		l.scope.noFact = l.scope.noFact || name == rootFacts && v == nil
		return l.scope.plain(v), nil
	}
	if strings.ContainsAny(rest, `*?#@|\!{}[]()`) {
		// The result of a query may depend on everything below the path.
		l.scope.plain(template.Below(root, rest))
		v, ok, err := l.query(name, root, rest)
		if err != nil {
			return nil, err
		}
		if ok && (v != nil || len(def) == 0) {
			l.scope.noFact = l.scope.noFact || name == rootFacts && v == nil
			return v, nil
		}
	}
	if name == rootData {
		l.scope.noteData(strings.Split(rest, "."))
	}
	if len(def) == 1 {
		return def[0], nil
	}
	l.scope.noFact = l.scope.noFact || name == rootFacts

	return nil, expression.WithHint(fmt.Errorf("`%s` is not known", path), cmp.Or(l.scope.outsideHint(path), expression.NotKnownHint(root, name, rest)))
}

func (l *lookup) root(ctx context.Context, name string) (any, error) {
	switch name {
	case rootFacts:
		facts, err := l.scope.getFacts(ctx)
		if err != nil {
			return nil, fmt.Errorf("facts: %w", err)
		}
		return facts, nil
	case rootEnviron:
		l.scope.setDynamic()
		return l.environ, nil
	case rootData:
		if l.scope.phase == inData {
			return nil, errNoData
		}
		return l.scope.data, nil
	default:
		hint := cmp.Or(document.DidYouMean(name, []string{rootFacts, rootData, rootEnviron}), "for example lookup('data.name')")
		return nil, expression.WithHint(fmt.Errorf("lookup takes a path under facts., data. or environ., not `%s`", name), hint)
	}
}

// query evaluates a path with wildcards, conditions or modifiers.
func (l *lookup) query(name string, root any, path string) (any, bool, error) {
	text, have := l.texts[name]
	if !have {
		var err error
		if text, err = model.EncodeJSON(template.Reveal(root, l.scope.reveal)); err != nil {
			return nil, false, err
		}
		l.texts[name] = text
	}
	result := gjson.GetBytes(text, path)
	if !result.Exists() {
		return nil, false, nil
	}
	// Integers become int.
	v, problems := document.Read("answer.json", []byte(result.Raw), int64(len(result.Raw)))
	if len(problems) > 0 {
		return result.Value(), true, nil
	}

	return v.Plain(), true, nil
}

type registered []any

// newRegistered returns the list. Each field also has a key in CamelCase, for CCM manifests.
func newRegistered(all []registration.Registration) registered {
	out := registered{}
	for _, r := range all {
		item, annotations := map[string]any{"node": r.Node}, map[string]any{}
		for key, value := range r.Annotations {
			annotations[key] = value
		}
		for key, value := range map[string]any{
			"Cluster": r.Cluster, "Service": r.Service, "Protocol": r.ProtocolName, "Address": r.Address, "Port": r.Port,
			"Priority": r.Priority, "TTL": r.TTL.String(), "Annotations": annotations,
		} {
			item[key], item[strings.ToLower(key)] = value, value
		}
		out = append(out, item)
	}

	return out
}

// PrometheusFileSD returns the list as JSON for the file discovery of Prometheus.
func (r registered) PrometheusFileSD() (string, error) {
	all := make([]registration.Registration, len(r))
	for i, item := range r {
		m := item.(map[string]any)
		all[i] = registration.Registration{
			Cluster: m["cluster"].(string), Service: m["service"].(string), ProtocolName: m["protocol"].(string),
			Address: m["address"].(string), Port: m["port"].(int), Priority: m["priority"].(int), Node: m["node"].(string),
			Annotations: map[string]string{},
		}
		for key, value := range m["annotations"].(map[string]any) {
			all[i].Annotations[key] = value.(string)
		}
	}
	text, err := json.MarshalIndent(registration.Targets(all), "", "  ")

	return string(text), err
}

// registrations implements the function registrations. It returns a list of mappings, the lowest
// priority number first. Equal arguments are requested once per document.
func (w *evaluator) registrations(ctx context.Context, words ...string) (any, error) {
	w.setDynamic()
	if w.opts.Registrations == nil {
		return nil, expression.WithHint(fmt.Errorf("registrations %w", errNoNATS), noNATSHint)
	}
	for i, key := range []string{"cluster", "protocol", "service", "address"} {
		if words[i] == "" {
			return nil, expression.WithHint(fmt.Errorf("registrations: its %s is empty", key), "write '*' for any")
		}
	}
	found, err := cached(w, "registrations:"+strings.Join(words, "\x00"), func() ([]registration.Registration, error) {
		return w.opts.Registrations(ctx, words[0], words[1], words[2], words[3])
	})
	if err != nil {
		return nil, fmt.Errorf("registrations: %w", err)
	}

	return newRegistered(found), nil
}
