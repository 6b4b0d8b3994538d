package target

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"

	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/pkg/version"
)

// The functions over versions.
const (
	nameVersions = "compare"
	nameOlder    = "older"
	nameNewer    = "newer"
	nameUpstream = "upstream"
)

func versionFunctions() []string { return []string{nameVersions, nameOlder, nameNewer, nameUpstream} }

// compareVersions returns the order of two versions, by a scheme if there is a third parameter. known is false if a version
// is missing.
func compareVersions(p []any) (order int, known bool, err error) {
	scheme := ""
	if len(p) > 2 {
		scheme, _ = p[2].(string)
	}
	if p[0] == nil || p[1] == nil {
		return 0, false, nil
	}
	var versions [2]string
	for i := range versions {
		text, ok := p[i].(string)
		if _, isPackage := p[i].(*Package); isPackage {
			return 0, false, errors.New(`a version is text, not a package: write package("…").version`)
		}
		if !ok {
			return 0, false, fmt.Errorf("a version is text, not %s", kind(p[i]))
		}
		versions[i] = text
	}
	order, err = version.CompareBy(scheme, versions[0], versions[1])

	return order, err == nil, err
}

// versions returns the functions over versions. A missing version is neither older nor newer.
func versions() []expr.Option {
	is := func(want int) func(...any) (any, error) {
		return func(p ...any) (any, error) {
			order, known, err := compareVersions(p)
			return known && order == want, err
		}
	}
	two, three := new(func(any, any) bool), new(func(any, any, any) bool)

	return []expr.Option{
		expr.Function(nameVersions, func(p ...any) (any, error) {
			order, known, err := compareVersions(p)
			if !known {
				return nil, err
			}
			return order, nil
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

// checkScheme rejects an unknown version scheme.
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

// warn adds a warning once, because the tree is visited several times.
func (p *patcher) warn(text string) {
	if !slices.Contains(p.warnings, text) {
		p.warnings = append(p.warnings, text)
	}
}

// warnOfTexts warns of <, <=, > and >= with text, which probably is a version or a number.
func (p *patcher) warnOfTexts(n *ast.BinaryNode) {
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
