package target

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"

	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/pkg/version"
)

// The functions that compare versions.
const (
	nameVersions = "compare"
	nameOlder    = "older"
	nameNewer    = "newer"
	nameUpstream = "upstream"
)

// versionFunctions are the functions over versions that expressions may use.
func versionFunctions() []string { return []string{nameVersions, nameOlder, nameNewer, nameUpstream} }

// versions are the functions over versions. A missing version is neither older nor newer.
func versions() []expr.Option {
	order := func(p []any) (int, bool, error) {
		scheme := ""
		if len(p) > 2 {
			scheme, _ = p[2].(string)
		}
		if p[0] == nil || p[1] == nil {
			return 0, false, nil
		}
		a, isA := p[0].(string)
		b, isB := p[1].(string)
		if !isA || !isB {
			return 0, false, fmt.Errorf("a version is text, not %s", kind(map[bool]any{true: p[1], false: p[0]}[isA]))
		}
		n, err := version.CompareBy(scheme, a, b)

		return n, err == nil, err
	}
	is := func(want int) func(...any) (any, error) {
		return func(p ...any) (any, error) {
			n, known, err := order(p)
			return known && n == want, err
		}
	}
	two, three := new(func(any, any) bool), new(func(any, any, any) bool)

	return []expr.Option{
		expr.Function(nameVersions, func(p ...any) (any, error) {
			n, known, err := order(p)
			if !known {
				return nil, err
			}
			return n, nil
		}, new(func(any, any) any), new(func(any, any, any) any)),
		expr.Function(nameOlder, is(-1), two, three),
		expr.Function(nameNewer, is(1), two, three),
		expr.Function(nameUpstream, func(p ...any) (any, error) {
			text, ok := p[0].(string)
			if !ok {
				return nil, nil
			}
			return version.Upstream(text), nil
		}, new(func(any) any)),
	}
}

// checkScheme refuses an unknown scheme of a version.
func (p *patcher) checkScheme(n *ast.CallNode, function string) {
	if !slices.Contains(versionFunctions(), function) || len(n.Arguments) < 3 {
		return
	}
	if scheme, ok := n.Arguments[2].(*ast.StringNode); ok && !slices.Contains(version.Schemes(), scheme.Value) {
		hint := document.DidYouMean(scheme.Value, version.Schemes())
		if hint == "" {
			hint = "it is one of " + strings.Join(version.Schemes(), ", ")
		}
		p.refuse(scheme, "unknown version scheme "+quote(scheme.Value), hint)
	}
}

// warn notes a warning once: the tree is visited several times.
func (p *patcher) warn(text string) {
	if !slices.Contains(p.warnings, text) {
		p.warnings = append(p.warnings, text)
	}
}

// checkTexts warns where texts are compared as texts: 9 is more than 10 there.
func (p *patcher) checkTexts(n *ast.BinaryNode) {
	switch n.Operator {
	case "<", "<=", ">", ">=":
	default:
		return
	}
	for _, side := range []ast.Node{n.Left, n.Right} {
		if text, ok := side.(*ast.StringNode); ok {
			p.warn(fmt.Sprintf("%s %s compares texts character by character (\"9\" is more than \"10\"); use older or newer for versions, and a number without quotes for numbers", n.Operator, quote(text.Value)))
			return
		}
	}
}
