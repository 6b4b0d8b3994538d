package kvstore

import (
	"errors"
	"slices"
	"strings"
)

// severalDenials are errors of several families on one line.
type severalDenials []error

// Error joins the texts.
func (s severalDenials) Error() string {
	var texts []string
	for _, err := range s {
		texts = append(texts, err.Error())
	}

	return strings.Join(texts, "; ")
}

// Unwrap returns all errors.
func (s severalDenials) Unwrap() []error { return s }

// SplitDenials returns the errors that JoinDenials or errors.Join joined, or err itself. It returns
// none for nil.
func SplitDenials(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}

	return []error{err}
}

// JoinDenials joins the errors of several families on one line and removes duplicates. An Unusable
// error replaces all others. It returns nil for no errors.
func JoinDenials(failed []error) error {
	if len(failed) == 0 {
		return nil
	}
	errs := slices.Clone(failed)
	for i, err := range errs {
		if cause := (Unusable{}); errors.As(err, &cause) {
			errs[i] = cause
		}
	}
	slices.SortStableFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	errs = slices.CompactFunc(errs, func(a, b error) bool { return a.Error() == b.Error() })
	if len(errs) == 1 {
		return errs[0]
	}

	return severalDenials(errs)
}
