package model

import (
	"slices"
	"strings"
)

// minRedacted is the shortest value that is looked for in texts: shorter ones
// would redact every second word and hide nothing.
const minRedacted = 4

// Redactor replaces known secret values within texts that were made by others,
// such as the error of a command. The zero value knows none. It is not changed
// after it was made, so it may be shared.
type Redactor struct{ values []string }

// NewRedactor makes a redactor of secrets. A value of several lines is also
// looked for line by line, because tools print them so.
func NewRedactor(secrets ...Secret) Redactor {
	var values []string
	add := func(v string) {
		if len(v) >= minRedacted && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	for _, s := range secrets {
		if s.derived {
			continue
		}
		add(s.value)
		add(strings.TrimSpace(s.value))
		for line := range strings.Lines(s.value) {
			add(strings.TrimSpace(line))
		}
	}
	// The longest first, or a value that is part of another would break it up.
	slices.SortStableFunc(values, func(a, b string) int { return len(b) - len(a) })

	return Redactor{values: values}
}

// Redact returns s with every known value replaced by Redacted.
func (r Redactor) Redact(s string) string {
	for _, v := range r.values {
		s = strings.ReplaceAll(s, v, Redacted)
	}

	return s
}
