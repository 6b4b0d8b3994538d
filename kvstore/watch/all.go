package watch

import (
	"errors"
	"slices"
	"strings"

	"github.com/musterfleet/muster/kvstore/denial"
)

// several are errors of several families, on one line.
type several []error

// Error joins the texts.
func (s several) Error() string {
	var texts []string
	for _, err := range s {
		texts = append(texts, err.Error())
	}

	return strings.Join(texts, "; ")
}

// Unwrap returns all.
func (s several) Unwrap() []error { return s }

// allOf joins errors; one that several families have, or its cause, appears once.
func allOf(failed []error) error {
	errs := slices.Clone(failed)
	for i, err := range errs {
		if cause := (denial.Unusable{}); errors.As(err, &cause) {
			errs[i] = cause
		}
	}
	slices.SortStableFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	errs = slices.CompactFunc(errs, func(a, b error) bool { return a.Error() == b.Error() })
	if len(errs) == 1 {
		return errs[0]
	}

	return several(errs)
}
