package scaffold

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// checked matches what the library adds to the error of a check of a printed value.
var checked = regexp.MustCompile(`(?s)^(?:executing "[^"]*" at )?<` + namePrinted + ` .*?>: error calling ` + namePrinted + `: `)

// place returns an error of the library with the name and line of the template.
// The library calls every template "string".
func place(name, text, message string) string {
	message = strings.NewReplacer(own+"write", "write", own+"render", "render").Replace(message)
	found := regexp.MustCompile(`(?s)^(?:parsing template string failed: )?(?:template: /?string:|Jet Runtime Error \("/?string":)(\d+)(?::\d+)?\)?: (?:executing "string" at )?(.*)$`).FindStringSubmatch(message)
	if found != nil {
		found[2] = checked.ReplaceAllString(found[2], "")
		return fmt.Sprintf("%s:%s: %s", name, found[1], found[2])
	}
	// Jet does not report where a function was called.
	function, _, _ := strings.Cut(message, ":")
	calls := func(line string) bool { return strings.Contains(line, function) }
	lines := strings.Split(text, "\n")
	at := slices.IndexFunc(lines, calls)
	if at < 0 || slices.ContainsFunc(lines[at+1:], calls) {
		return name + ": " + message
	}

	return fmt.Sprintf("%s:%d: %s", name, at+1, message)
}
