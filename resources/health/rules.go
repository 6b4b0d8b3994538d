package health

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

func (v *validator) rules(c model.HealthCheck) {
	v.format(c.Format, model.HealthGoss, "`goss_rules`")
	all := kinds()
	for _, name := range slices.Sorted(maps.Keys(c.GossRules)) {
		at := "goss_rules." + name
		k, known := all[name]
		switch {
		case name == "gossfile":
			v.problem(at, "write its rules here", "rules of other files are not read")
			continue
		case !known:
			v.problem(at, document.DidYouMean(name, slices.Sorted(maps.Keys(all))), "goss has no rules for `%s`", name)
			continue
		case len(c.GossRules[name]) == 0:
			v.problem(at, "", "`%s` has no rules", name)
		}
		for _, id := range slices.Sorted(maps.Keys(c.GossRules[name])) {
			v.rule(at+"."+id, name, id, c.GossRules[name][id], k)
		}
	}
}

func (v *validator) rule(at, of, id string, have map[string]any, k kind) {
	known := slices.Sorted(maps.Keys(k.attributes))
	if len(have) == 0 {
		v.problem(at, "one of "+strings.Join(known, ", "), "a rule of `%s` needs attributes", of)
		return
	}
	isKnown := true
	for _, key := range slices.Sorted(maps.Keys(have)) {
		form, ok := k.attributes[key]
		if isKnown = isKnown && ok; !ok {
			v.problem(at+"."+key, document.DidYouMean(key, known), "`%s` is no attribute of a goss rule for `%s`", key, of)
		} else if have[key] != nil {
			v.attribute(at+"."+key, key, have[key], form)
		}
	}
	isSet := func(key string) bool { return have[key] != nil }
	if isKnown && have["skip"] != true && !slices.ContainsFunc(k.needs, isSet) {
		v.problem(at, "", "a rule of `%s` needs `%s`", of, strings.Join(k.needs[:min(len(k.needs), 2)], "` or `"))
	}
	switch of {
	case "port":
		v.target(at, "port", id, have, isPort, "write tcp:22; tcp6, udp and udp6 are the others", "port")
	case "http":
		v.target(at, "url", id, have, isURL, "write http://… or https://…", "URL of `http`")
	}
}

// target checks the subject of a rule: an attribute, or else the name of the rule.
func (v *validator) target(at, key, id string, have map[string]any, valid func(string) bool, hint, what string) {
	if text, ok := have[key].(string); ok && text != "" {
		at, id = at+"."+key, text
	}
	if !valid(id) {
		v.problem(at, hint, "%s is no %s", quoted(id), what)
	}
}

func isPort(text string) bool {
	protocol, number, both := strings.Cut(text, ":")
	if !both {
		protocol, number = "tcp", text
	}
	n, err := strconv.ParseUint(number, 10, 16)

	return err == nil && n > 0 && slices.Contains([]string{"tcp", "tcp6", "udp", "udp6"}, protocol)
}

func isURL(text string) bool {
	scheme, rest, _ := strings.Cut(strings.ToLower(text), "://")

	return rest != "" && (scheme == "http" || scheme == "https")
}

func (v *validator) attribute(at, key string, value any, form string) {
	if want, ok := fits(form, value); !ok {
		v.problem(at, "", "`%s` must be %s, not %s", key, want, shown(value))
	} else if problem, hint := within(form, value); problem != "" {
		v.problem(at, hint, "`%s`: %s", key, problem)
	}
}

// fits reports whether a value has a form, and describes the form.
func fits(form string, value any) (want string, ok bool) {
	text, isText := value.(string)
	list, isList := value.([]any)
	_, isBool := value.(bool)
	_, isMap := value.(map[string]any)
	n, isInt := value.(int)
	switch form {
	case "text", "pattern":
		return "a text", isText
	case "texts":
		return "a list of texts", isList && !slices.ContainsFunc(list, func(item any) bool { _, isText := item.(string); return !isText })
	case "bool":
		return "true or false", isBool
	case "time":
		return "a whole number of milliseconds", isInt && n >= 0
	case "map", "paths":
		return "a mapping", isMap
	case "patterns", "matchers":
		return "a list", isList
	case "count":
		return "a number", isNumber(value)
	case "truth":
		return "true or false, or a matcher", isBool || isMap || text == "true" || text == "false"
	case "number":
		_, err := strconv.Atoi(text)
		return "a number, or a matcher", isMap || isNumber(value) || err == nil
	case "element":
		return "a text, a number or a matcher", isText || isMap || isNumber(value)
	default:
		return "", true
	}
}

// within returns the problem of the content of a value that fits a form.
func within(form string, value any) (problem, hint string) {
	list, isList := value.([]any)
	switch form {
	case "pattern":
		return pattern(value.(string), value.(string)), ""
	case "patterns":
		return patterns(list)
	case "lines":
		if isList {
			return patterns(list)
		}
		return matcher(value)
	case "", "truth", "number", "matcher", "element":
		return matcher(value)
	case "matchers":
		return matcher(list)
	case "paths":
		paths := value.(map[string]any)
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			if problem, hint = matcher(paths[path]); problem != "" {
				return problem, hint
			}
		}
	}

	return "", ""
}

func isNumber(value any) bool {
	switch value.(type) {
	case int, float64:
		return true
	default:
		return false
	}
}

func shown(value any) string {
	switch value := value.(type) {
	case nil:
		return "nothing"
	case string:
		return quoted(value)
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	default:
		return fmt.Sprint(value)
	}
}

// quoted returns a text in its source form, so that redaction finds a secret in it.
func quoted(text string) string {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return "a text of several lines"
	}

	return `"` + text + `"`
}

type kind struct {
	// attributes are the forms of the allowed attributes. The form "" is any matcher, "truth" a matcher
	// of a boolean, "number" one of a number, and "lines" one of lines, where a list holds patterns.
	// "time" is in milliseconds.
	attributes map[string]string
	// needs are attributes; a rule has at least one of them.
	needs []string
}

// kinds are the kinds of goss rules. A test of package goss compares them with goss, because only that
// package links goss.
func kinds() map[string]kind {
	out := map[string]kind{}
	for name, words := range map[string]string{
		"addr":         "!reachable:truth address:text local-address:text timeout:time",
		"command":      "!exit-status:number exec:text stderr:lines stdout:lines timeout:time",
		"dns":          "!resolvable:truth !resolveable:truth addrs resolve:text server:text timeout:time",
		"file":         "!exists:truth contains:lines contents:lines filetype gid group linked-to md5 mode owner path:text sha256 sha512 size uid",
		"group":        "!exists:truth gid:number groupname:text",
		"http":         "!status allow-insecure:bool body:lines ca-file:text cert-file:text headers:lines key-file:text method:text no-follow-redirects:bool password:text proxy:text request-body:text request-headers:texts timeout:time url:text username:text",
		"interface":    "!exists:truth addrs mtu name:text",
		"kernel-param": "!value name:text",
		"matching":     "!matches as-reader:bool content:any",
		"mount":        "!exists:truth filesystem mountpoint:text opts source timeout:time usage vfs-opts",
		"package":      "!installed:truth name:text versions",
		"port":         "!listening:truth ip port:text",
		"process":      "!running:truth comm:text",
		"service":      "!enabled:truth !running:truth !runlevels name:text",
		"user":         "!exists:truth gid:number groups home shell uid:number username:text",
	} {
		k := kind{attributes: map[string]string{"meta": "map", "skip": "bool", "title": "text"}}
		for _, word := range strings.Fields(words) {
			key, form, _ := strings.Cut(word, ":")
			key, needed := strings.CutPrefix(key, "!")
			k.attributes[key] = form
			if needed {
				k.needs = append(k.needs, key)
			}
		}
		out[name] = k
	}

	return out
}

// matcherArguments are the forms of the arguments of the matchers of goss. "pattern" is a regular
// expression, "patterns" a list of texts and regular expressions, "element" a matcher that is neither a
// list nor a boolean, and "paths" a mapping of paths to matchers.
func matcherArguments() map[string]string {
	return map[string]string{
		"equal": "any", "have-prefix": "text", "have-suffix": "text", "contain-substring": "text", "semver-constraint": "text",
		"match-regexp": "pattern", "have-patterns": "patterns", "have-len": "count", "gt": "count", "ge": "count", "lt": "count", "le": "count",
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
		for _, item := range value {
			if problem, hint = matcher(item); problem != "" {
				return problem, hint
			}
		}
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

func namedMatcher(name string, of any) (problem, hint string) {
	all := matcherArguments()
	form, known := all[name]
	if !known {
		return fmt.Sprintf("goss has no matcher `%s`", name), document.DidYouMean(name, slices.Sorted(maps.Keys(all)))
	}
	if want, ok := fits(form, of); !ok {
		return fmt.Sprintf("`%s` needs %s, not %s", name, want, shown(of)), ""
	}

	return within(form, of)
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

func pattern(text, expression string) string {
	var problem *syntax.Error
	if _, err := regexp.Compile(expression); errors.As(err, &problem) {
		return quoted(text) + " is no pattern: " + problem.Code.String()
	}

	return ""
}
