package manifest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest/expression"
)

// noteData records that an expression reads paths of the data. It warns about a path that only a
// parent document sets.
func (sc *scope) noteData(paths ...[]string) {
	if sc.quiet || sc.phase == inData || sc.outer == nil {
		return
	}
	for _, path := range paths {
		name, parent := sc.onlyOutside(path)
		if parent == "" {
			continue
		}
		sc.warn("data."+name, fmt.Sprintf("`data.%s` is set in %s only", name, parent), notInherited)
	}
}

// warn adds a warning about a subject at the position of the scope, unless there already is one.
func (sc *scope) warn(subject, message, hint string) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if _, have := sc.warnings[subject]; !have {
		sc.warnings[subject] = model.Problem{Pos: sc.at, Message: message, Hint: hint}
	}
}

const notInherited = "child manifests do not inherit data: pass it with `data` of the apply resource"

// Warnings returns the warnings about valid expressions.
func (w *evaluator) Warnings() model.Problems {
	w.mu.Lock()
	defer w.mu.Unlock()

	var out model.Problems
	for _, subject := range slices.Sorted(maps.Keys(w.warnings)) {
		out = append(out, w.warnings[subject])
	}

	return out.Sorted()
}

// onlyOutside returns the first part of a path that is missing from the data, and the nearest
// parent document that sets it. The document is empty if no parent sets it.
func (sc *scope) onlyOutside(path []string) (name, document string) {
	for end := range path {
		part := path[:end+1]
		if _, ok := expression.Find(sc.data, part); ok {
			continue
		}
		for outer := sc.outer; outer != nil; outer = outer.outer {
			if _, ok := expression.Find(outer.Data, part); ok {
				return strings.Join(part, "."), outer.doc.Name()
			}
		}
		return "", ""
	}

	return "", ""
}

// outsideHint returns the remedy for a path, Data.a or data.a, that only a parent document sets.
func (sc *scope) outsideHint(path string) string {
	root, rest, _ := strings.Cut(path, ".")
	if !strings.EqualFold(root, expression.NameData) || sc.phase == inData {
		return ""
	}
	if _, parent := sc.onlyOutside(strings.Split(rest, ".")); parent != "" {
		return parent + " sets it, but " + notInherited
	}

	return ""
}

// dataRead matches the paths of data that a template reads.
var dataRead = regexp.MustCompile(`\b[Dd]ata(?:\.((?:\w+\.)*\w+)|\s*\[?\s*"(\w+)")`)

// noteTexts calls noteData for the texts of a template.
func (t *templates) noteTexts() {
	for _, text := range t.texts {
		for _, found := range dataRead.FindAllStringSubmatch(text, -1) {
			t.noteData(strings.Split(found[1]+found[2], "."))
		}
	}
}
