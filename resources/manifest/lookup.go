package manifest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/template"
)

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
	v, err := fromJSON(result.Raw)
	if err != nil {
		return result.Value(), true, nil
	}

	return v, true, nil
}

// fromJSON decodes a document. Integers become int.
func fromJSON(text string) (any, error) {
	v, problems := document.Read("answer.json", []byte(text), int64(len(text)))

	return v.Plain(), problems.Err()
}
