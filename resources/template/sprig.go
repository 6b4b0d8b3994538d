package template

import (
	"errors"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// The most that one call of a function may make.
const (
	maxText  = 16 << 20
	maxItems = 1_000_000
)

// errFar is a function that is told to make more than that.
var errFar = errors.New("it would make more than is allowed")

// sprigFunctions are those of sprig, without the one that asks the network, and
// with a limit to those that make as much as they are told to.
func sprigFunctions() template.FuncMap {
	functions := sprig.TxtFuncMap()
	delete(functions, "getHostByName")
	for _, name := range []string{"repeat", "indent", "nindent"} {
		if produce, ok := functions[name].(func(int, string) string); ok {
			functions[name] = func(count int, text string) (string, error) {
				// An indent is made once for each line of the text.
				if count > 0 && max(1, len(text)) > maxText/count {
					return "", errFar
				}
				return produce(count, text), nil
			}
		}
	}
	for _, name := range []string{"randAlphaNum", "randAlpha", "randAscii", "randNumeric"} {
		if produce, ok := functions[name].(func(int) string); ok {
			functions[name] = func(count int) (string, error) {
				if count > maxItems {
					return "", errFar
				}
				return produce(count), nil
			}
		}
	}
	functions["randBytes"] = func(count int) (string, error) {
		if count > maxItems {
			return "", errFar
		}
		return sprig.TxtFuncMap()["randBytes"].(func(int) (string, error))(count)
	}
	boundLists(functions)

	return functions
}

// boundLists limits what counts.
func boundLists(functions template.FuncMap) {
	if until, ok := functions["until"].(func(int) []int); ok {
		functions["until"] = func(count int) ([]int, error) {
			if isTooFar(0, 1, count) {
				return nil, errFar
			}
			return until(count), nil
		}
	}
	if untilStep, ok := functions["untilStep"].(func(int, int, int) []int); ok {
		functions["untilStep"] = func(start, stop, step int) ([]int, error) {
			if isTooFar(start, step, stop) {
				return nil, errFar
			}
			return untilStep(start, stop, step), nil
		}
	}
	if seq, ok := functions["seq"].(func(...int) string); ok {
		functions["seq"] = func(params ...int) (string, error) {
			start, step, end := 1, 1, 0
			switch len(params) {
			case 1:
				end = params[0]
			case 2:
				start, end = params[0], params[1]
			case 3:
				start, step, end = params[0], params[1], params[2]
			}
			if isTooFar(start, step, end) {
				return "", errFar
			}
			return seq(params...), nil
		}
	}
}

// isTooFar says that there are more steps from one number to another than a list may have.
func isTooFar(from, step, to int) bool {
	distance := float64(to) - float64(from)
	if step != 0 {
		distance /= float64(step)
	}

	return distance > maxItems || distance < -maxItems
}
