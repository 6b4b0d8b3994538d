package edits

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// combine applies parts to a text in their order, and returns the text and an edit for each part. A part that
// fails changes nothing. Parts that would change the result again fail, because each run would undo the
// last one. beside are all parts of the file.
func combine(parts []Part, before Text, beside []Part) (after Text, edits []Edit) {
	edits = make([]Edit, len(parts))
	unsettled := make([]error, len(parts))
	for {
		after = before
		due := false
		for i, p := range parts {
			if edits[i] = (Edit{Err: unsettled[i]}); unsettled[i] == nil {
				edits[i] = p.Edit(after, beside)
			}
			if edits[i].isDue() {
				after, due = edits[i].After, true
			}
		}
		if err := after.limit(); err != nil {
			failDue(edits, err)
			return before, edits
		}
		if !due || !findUnsettled(parts, after, beside, edits, unsettled) {
			return after, edits
		}
	}
}

// limit returns an error for a text that is too large for an edit.
func (t Text) limit() error {
	size := len(t.mark)
	for _, l := range t.lines {
		size += len(l.raw)
	}
	switch {
	case size > maxBytes:
		return errGrown
	case len(t.lines) > maxLines:
		return errLines
	default:
		return nil
	}
}

// failDue fails all due edits.
func failDue(edits []Edit, err error) {
	for i := range edits {
		if edits[i].isDue() {
			edits[i].Err = err
		}
	}
}

// findUnsettled applies the parts to their own result, and records an error for each part that changes it.
func findUnsettled(parts []Part, after Text, beside []Part, edits []Edit, unsettled []error) bool {
	var found []int
	for i, p := range parts {
		if edits[i].Err != nil {
			continue
		}
		again := p.Edit(after, beside)
		if again.isDue() {
			after = again.After
		}
		if again.Err != nil {
			unsettled[i] = fmt.Errorf("after the changes of the other parts of the file: %w", again.Err)
		}
		if again.Err != nil || again.isDue() {
			found = append(found, i)
		}
	}
	for _, i := range found {
		if unsettled[i] == nil {
			unsettled[i] = undone(parts, i, found)
		}
	}

	return len(found) > 0
}

var errEndless = errors.New("it would change its own result in each run: make `match` match only unchanged lines")

// undone returns the error of a part that changes the result of all parts.
func undone(parts []Part, i int, found []int) error {
	if len(found) == 1 {
		return errEndless
	}
	var others []string
	for _, at := range slices.DeleteFunc(slices.Clone(found), func(at int) bool { return at == i }) {
		others = append(others, parts[at].ref().String())
	}
	more := ""
	if n := len(others) - maxNumbers; n > 0 {
		others, more = others[:maxNumbers], fmt.Sprintf(" and %d more", n)
	}

	return fmt.Errorf("it and %s%s undo each other: change or remove one of them", strings.Join(others, ", "), more)
}
