package health

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// rules checks that goss can evaluate the rules of a check.
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

// rule checks one rule, called id.
func (v *validator) rule(at, of, id string, have map[string]any, k kind) {
	known := slices.Sorted(maps.Keys(k.attributes))
	if len(have) == 0 {
		v.problem(at, "one of "+strings.Join(known, ", "), "a rule of `%s` needs attributes", of)
		return
	}
	isKnown := true
	for _, key := range slices.Sorted(maps.Keys(have)) {
		takes, ok := k.attributes[key]
		if isKnown = isKnown && ok; !ok {
			v.problem(at+"."+key, document.DidYouMean(key, known), "`%s` is no attribute of a goss rule for `%s`", key, of)
		} else if have[key] != nil {
			v.attribute(at+"."+key, key, have[key], takes)
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

// attribute checks the value of an attribute.
func (v *validator) attribute(at, key string, value any, takes sort) {
	text, isText := value.(string)
	_, isBool := value.(bool)
	_, isMap := value.(map[string]any)
	n, isInt := value.(int)
	ok, want := true, ""
	switch takes {
	case sortAny:
	case sortText:
		ok, want = isText, "a text"
	case sortTexts:
		ok, want = isTexts(value), "a list of texts"
	case sortBool:
		ok, want = isBool, "true or false"
	case sortTime:
		ok, want = isInt && n >= 0, "a whole number of milliseconds"
	case sortMap:
		ok, want = isMap, "a mapping"
	case sortTruth:
		ok, want = isBool || isMap || value == "true" || value == "false", "true or false, or a matcher"
	case sortNumber:
		ok, want = isMap || isNumber(value) || isText && isWhole(text), "a number, or a matcher"
	}
	if !ok {
		v.problem(at, "", "`%s` must be %s, not %s", key, want, shown(value))
		return
	}
	var problem, hint string
	list, isList := value.([]any)
	switch {
	case takes == sortLines && isList:
		problem, hint = patterns(list)
	case takes == sortLines, takes == sortTruth, takes == sortNumber, takes == "":
		problem, hint = matcher(value)
	}
	if problem != "" {
		v.problem(at, hint, "`%s`: %s", key, problem)
	}
}

func isTexts(value any) bool {
	list, ok := value.([]any)

	return ok && !slices.ContainsFunc(list, func(item any) bool { _, isText := item.(string); return !isText })
}

func isNumber(value any) bool {
	switch value.(type) {
	case int, float64:
		return true
	default:
		return false
	}
}

func isWhole(text string) bool {
	_, err := strconv.Atoi(text)

	return err == nil
}

// shown returns a value in the form for a problem.
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
