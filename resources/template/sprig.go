package template

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// The most that one call of a function may make.
const (
	maxText  = 16 << 20
	maxItems = 1_000_000
)

// errFar is a function that would make more than that.
var errFar = errors.New("it would make more than is allowed")

// sprigFunctions are those of sprig, without the one that asks the network, and
// with a limit to those that make as much as their arguments ask for.
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
	boundTexts(functions)
	orderKeys(functions)

	return functions
}

// repeat is strings.Repeat, within bounds.
func repeat(text string, count int) (string, error) {
	if count < 0 || count > 0 && max(1, len(text)) > maxText/count {
		return "", errFar
	}

	return strings.Repeat(text, count), nil
}

// replace is strings.Replace, within bounds.
func replace(text, old, with string, count int) (string, error) {
	found := strings.Count(text, old)
	if count >= 0 {
		found = min(found, count)
	}
	if found > 0 && max(1, len(with)) > maxText/found {
		return "", errFar
	}

	return strings.Replace(text, old, with, count), nil
}

// boundTexts limits what puts one text into another again and again.
func boundTexts(functions template.FuncMap) {
	functions["replace"] = func(old, with, text string) (string, error) { return replace(text, old, with, -1) }
	if join, ok := functions["join"].(func(string, any) string); ok {
		functions["join"] = func(separator string, list any) (string, error) {
			if v := reflect.ValueOf(list); v.IsValid() && (v.Kind() == reflect.Slice || v.Kind() == reflect.Array) && v.Len() > 0 && max(1, len(separator)) > maxText/v.Len() {
				return "", errFar
			}
			return join(separator, list), nil
		}
	}
	functions["printf"] = func(format string, args ...any) (string, error) {
		if wide := regexp.MustCompile(`%[^a-zA-Z%]*([0-9]{5,}|\*)`); strings.Count(format, "%") > maxVerbs || wide.MatchString(format) {
			return "", errFar
		}
		return fmt.Sprintf(format, args...), nil
	}
	set := functions["set"]
	if set, ok := set.(func(map[string]any, string, any) map[string]any); ok {
		functions["set"] = func(d map[string]any, key string, v any) (map[string]any, error) {
			if holds(v, d) {
				return nil, errItself
			}
			return set(d, key, v), nil
		}
	}
	for _, name := range []string{"merge", "mergeOverwrite"} {
		if merge, ok := functions[name].(func(map[string]any, ...map[string]any) any); ok {
			functions[name] = func(d map[string]any, others ...map[string]any) (any, error) {
				if slices.ContainsFunc(others, func(other map[string]any) bool { return holds(other, d) }) {
					return nil, errItself
				}
				return merge(d, others...), nil
			}
		}
	}
	for _, name := range []string{"mustMerge", "mustMergeOverwrite"} {
		functions[name] = functions[strings.ToLower(name[4:5])+name[5:]]
	}
}

// maxVerbs is how many % a format may have.
const maxVerbs = 1000

// errItself is a mapping that would hold itself: whatever prints it does not end.
var errItself = errors.New("a mapping cannot hold itself")

// holds reports whether a mapping is somewhere within a value, or is it.
func holds(v any, d map[string]any) bool {
	switch v := v.(type) {
	case map[string]any:
		if reflect.ValueOf(v).Pointer() == reflect.ValueOf(d).Pointer() {
			return true
		}
		for _, each := range v {
			if holds(each, d) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(each any) bool { return holds(each, d) })
	}

	return false
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

// isTooFar reports whether there are more steps from one number to another than a list may have.
func isTooFar(from, step, to int) bool {
	distance := float64(to) - float64(from)
	if step != 0 {
		distance /= float64(step)
	}

	return distance > maxItems || distance < -maxItems
}
