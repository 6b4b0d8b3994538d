package health

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/document"
)

// takers are the matchers of goss, each with what it takes: "text", "pattern" (a
// regular expression), "patterns" (a list of them and of texts), "number",
// "matcher", "element" (a matcher that is no list and no boolean), "matchers" (a
// list) and "paths" (a mapping of paths to matchers).
func takers() map[string]string {
	return map[string]string{
		"equal": "any", "have-prefix": "text", "have-suffix": "text", "contain-substring": "text", "semver-constraint": "text",
		"match-regexp": "pattern", "have-patterns": "patterns", "have-len": "number", "gt": "number", "ge": "number", "lt": "number", "le": "number",
		"have-key": "matcher", "not": "matcher", "contain-element": "element",
		"contain-elements": "matchers", "consist-of": "matchers", "and": "matchers", "or": "matchers", "gjson": "paths",
	}
}

// matcher says what is wrong with a matcher of goss, nothing when it can be
// evaluated: a value, a list of matchers, or a mapping of the name of one to what
// that takes.
func matcher(value any) (problem, hint string) {
	switch value := value.(type) {
	case nil:
		return "a matcher is a value or a mapping, not nothing", ""
	case []any:
		return matchers(value)
	case map[string]any:
		if len(value) != 1 {
			return fmt.Sprintf("a matcher is one mapping of one name, not of %d", len(value)), "write and: [{...}, {...}]"
		}
		for name, of := range value {
			return named(name, of)
		}
	}

	return "", ""
}

func matchers(list []any) (problem, hint string) {
	for _, item := range list {
		if problem, hint = matcher(item); problem != "" {
			return problem, hint
		}
	}

	return "", ""
}

// named is matcher for one that has a name.
func named(name string, of any) (problem, hint string) {
	all := takers()
	takes, known := all[name]
	if !known {
		return fmt.Sprintf("goss has no matcher `%s`", name), document.DidYouMean(name, slices.Sorted(maps.Keys(all)))
	}
	text, isText := of.(string)
	list, isList := of.([]any)
	paths, isMap := of.(map[string]any)
	ok, want := true, ""
	switch takes {
	case "text", "pattern":
		ok, want = isText, "a text"
	case "number":
		ok, want = isNumber(of), "a number"
	case "patterns", "matchers":
		ok, want = isList, "a list"
	case "paths":
		ok, want = isMap, "a mapping"
	case "element":
		ok, want = isText || isMap || isNumber(of), "a text, a number or a matcher"
	}
	if !ok {
		return fmt.Sprintf("`%s` needs %s, not %s", name, want, shown(of)), ""
	}
	switch takes {
	case "pattern":
		return pattern(text, text), ""
	case "patterns":
		return patterns(list)
	case "matcher", "element":
		return matcher(of)
	case "matchers":
		return matchers(list)
	case "paths":
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			if problem, hint = matcher(paths[path]); problem != "" {
				return problem, hint
			}
		}
	}

	return "", ""
}

// patterns says what is wrong with a list of texts and regular expressions, which
// stand between slashes, each with a `!` before it where no line may match.
func patterns(list []any) (problem, hint string) {
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			return "a list here is one of patterns, which are texts, not " + shown(item), ""
		}
		expression := strings.TrimPrefix(text, "!")
		if !strings.HasPrefix(expression, "/") || !strings.HasSuffix(expression, "/") {
			continue
		}
		if problem := pattern(text, strings.TrimSuffix(expression[1:], "/")); problem != "" || expression == "/" {
			return cmp.Or(problem, quoted(text)+" is no pattern: the expression is empty"), ""
		}
	}

	return "", ""
}

// pattern says what is wrong with a regular expression, which is part of text.
func pattern(text, expression string) string {
	var problem *syntax.Error
	if _, err := regexp.Compile(expression); errors.As(err, &problem) {
		return quoted(text) + " is no pattern: " + problem.Code.String()
	}

	return ""
}
