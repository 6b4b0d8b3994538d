package targets

import (
	"fmt"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm/runtime"
)

// safe returns the functions that replace operations of the language on values of unknown type. The language fails on a
// missing value, but facts differ between nodes, so a missing fact compares false here.
func safe() []expr.Option {
	return append(versions(), []expr.Option{
		expr.Function(nameTruth, func(p ...any) (any, error) { return truth(p[0]) }, new(func(any) bool)),
		expr.Function(nameGet, func(p ...any) (any, error) { return get(p[0], p[1]) }, new(func(any, any) any)),
		expr.Function(nameList, func(p ...any) (any, error) { return orEmpty(p[0], []any{}), nil }, new(func(any) any)),
		expr.Function(nameText, func(p ...any) (any, error) { return orEmpty(p[0], ""), nil }, new(func(any) any)),
		expr.Function(nameCompare, func(p ...any) (any, error) { return compare(p[0], p[1], p[2]), nil }, new(func(string, any, any) bool)),
		expr.Function(nameCompute, func(p ...any) (any, error) { return compute(p[0], p[1], p[2]), nil }, new(func(string, any, any) any)),
		expr.Function(nameAbs, func(p ...any) (any, error) { return absolute(p[0]), nil }, new(func(any) any)),
	}...)
}

// truth returns a value as a condition. A missing value is false.
func truth(v any) (bool, error) {
	switch v := v.(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	default:
		return false, fmt.Errorf("a value is %s, not true or false", kind(v))
	}
}

// get returns an element of a mapping, a list or a package, nil for a missing one.
func get(of, key any) (any, error) {
	switch of := of.(type) {
	case *Package:
		return of.value(key)
	case map[string]any:
		if name, ok := key.(string); ok {
			return of[name], nil
		}
	case []any:
		if i, ok := key.(int); ok && i >= 0 && i < len(of) {
			return of[i], nil
		}
	}

	return nil, nil
}

func orEmpty(v, empty any) any {
	if v == nil {
		return empty
	}

	return v
}

// compare compares two values. A missing value is neither less nor more.
func compare(operator, a, b any) bool {
	if a == nil || b == nil {
		return false
	}
	switch operator {
	case "<":
		return runtime.Less(a, b)
	case "<=":
		return runtime.LessOrEqual(a, b)
	case ">":
		return runtime.More(a, b)
	default:
		return runtime.MoreOrEqual(a, b)
	}
}

// compute calculates with two values. The result is missing if one of them is.
func compute(operator, a, b any) any {
	if a == nil || b == nil {
		return nil
	}
	switch operator {
	case "+":
		return runtime.Add(a, b)
	case "-":
		return runtime.Subtract(a, b)
	case "*":
		return runtime.Multiply(a, b)
	default:
		return runtime.Divide(a, b)
	}
}

// absolute returns a number without its sign.
func absolute(v any) any {
	if compare("<", v, 0) {
		return compute("-", 0, v)
	}

	return v
}
