package targets

import (
	"cmp"
	"fmt"
	"reflect"
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

// compareVersions returns the order of the two versions that a function compares, by a scheme if there is a third
// parameter. known is false if a version is missing.
func compareVersions(function string, p []any) (order int, known bool, err error) {
	scheme := ""
	if len(p) > 2 {
		scheme, _ = p[2].(string)
	}
	var versions [2]string
	for i := range versions {
		text, ok := p[i].(string)
		if p[i] != nil && !ok {
			return 0, false, notVersion(function, i, kind(p[i]))
		}
		versions[i] = text
	}
	if p[0] == nil || p[1] == nil {
		return 0, false, nil
	}
	if order, err = version.CompareBy(scheme, versions[0], versions[1]); err != nil {
		return 0, false, fmt.Errorf("%s: %w", function, err)
	}

	return order, true, nil
}

// notVersion returns the error of an argument, counted from 0, that is not text.
func notVersion(function string, argument int, kind string) error {
	return fmt.Errorf("argument %d of %s is %s, not a version", argument+1, function, kind)
}

// versions returns the functions over versions. A missing version is neither older nor newer.
func versions() []expr.Option {
	is := func(function string, want int) func(...any) (any, error) {
		return func(p ...any) (any, error) {
			order, known, err := compareVersions(function, p)
			return known && order == want, err
		}
	}
	two, three := new(func(any, any) bool), new(func(any, any, any) bool)

	return []expr.Option{
		expr.Function(nameVersions, func(p ...any) (any, error) {
			order, known, err := compareVersions(nameVersions, p)
			if !known {
				return nil, err
			}
			return order, nil
		}, new(func(any, any) any), new(func(any, any, any) any)),
		expr.Function(nameOlder, is(nameOlder, -1), two, three),
		expr.Function(nameNewer, is(nameNewer, 1), two, three),
		expr.Function(nameUpstream, func(p ...any) (any, error) {
			text, ok := p[0].(string)
			switch {
			case p[0] == nil:
				return nil, nil
			case !ok:
				return nil, notVersion(nameUpstream, 0, kind(p[0]))
			default:
				return version.Upstream(text), nil
			}
		}, new(func(any) any)),
	}
}

// checkVersions rejects an argument of a function over versions that is never a version or a scheme.
func (p *patcher) checkVersions(n *ast.CallNode, function string) {
	if !slices.Contains(versionFunctions(), function) {
		return
	}
	for i, argument := range n.Arguments {
		is, hint := kindOf(argument), ""
		switch {
		case is == "":
			continue
		case i == 2:
			p.refuse(argument, fmt.Sprintf("argument %d of %s is %s, not a version scheme", i+1, function, is), hintForScheme(""))
			return
		case packageCall(argument) != nil:
			hint = "write " + argument.String() + ".version"
		case is == kind(0.0) && isLiteral(argument):
			hint = `write it in quotes, such as "1.2"`
		}
		p.refuse(argument, notVersion(function, i, is).Error(), hint)
	}
}

// isLiteral reports whether a node is a number in the expression.
func isLiteral(n ast.Node) bool {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return true
	default:
		return false
	}
}

// kindOf returns the kind of an argument that is never text, in a word; empty if it may be text or missing.
func kindOf(n ast.Node) string {
	if packageCall(n) != nil {
		return kind((*Package)(nil))
	}
	is := n.Type()
	if _, isNil := n.(*ast.NilNode); isNil || is == nil || is.Kind() == reflect.Interface || is.Kind() == reflect.String {
		return ""
	}

	return kind(reflect.Zero(is).Interface())
}

// hintForScheme names the schemes, or the one nearest to a word.
func hintForScheme(word string) string {
	return cmp.Or(document.DidYouMean(word, version.Schemes()), "it is one of "+strings.Join(version.Schemes(), ", "))
}

// checkScheme rejects an unknown version scheme.
func (p *patcher) checkScheme(n *ast.CallNode, function string) {
	if !slices.Contains(versionFunctions(), function) || len(n.Arguments) < 3 {
		return
	}
	if scheme, ok := n.Arguments[2].(*ast.StringNode); ok && !slices.Contains(version.Schemes(), scheme.Value) {
		p.refuse(scheme, "unknown version scheme "+quote(scheme.Value), hintForScheme(scheme.Value))
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
