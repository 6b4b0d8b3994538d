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

// matcherArguments are the matchers of goss and their arguments: "text", "pattern" (a
// regular expression), "patterns" (a list of those and of texts), "number",
// "matcher", "element" (a matcher that is no list and no boolean), "matchers"
// (a list) and "paths" (a mapping of paths to matchers).
func matcherArguments() map[string]string {
	return map[string]string{
		"equal": "any", "have-prefix": "text", "have-suffix": "text", "contain-substring": "text", "semver-constraint": "text",
		"match-regexp": "pattern", "have-patterns": "patterns", "have-len": "number", "gt": "number", "ge": "number", "lt": "number", "le": "number",
		"have-key": "matcher", "not": "matcher", "contain-element": "element",
		"contain-elements": "matchers", "consist-of": "matchers", "and": "matchers", "or": "matchers", "gjson": "paths",
	}
}

// matcher returns the problem of a goss matcher, none when it is valid: a
// value, a list of matchers, or a mapping of one name to its argument.
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
			return namedMatcher(name, of)
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

// namedMatcher is matcher for a mapping of a name to its argument.
func namedMatcher(name string, of any) (problem, hint string) {
	all := matcherArguments()
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

// patterns returns the problem of a list of texts and regular expressions. The
// latter are between slashes; a `!` before them negates.
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

// pattern returns the problem of a regular expression in text.
func pattern(text, expression string) string {
	var problem *syntax.Error
	if _, err := regexp.Compile(expression); errors.As(err, &problem) {
		return quoted(text) + " is no pattern: " + problem.Code.String()
	}

	return ""
}
