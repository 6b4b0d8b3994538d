package expression

import "errors"

// WithHint adds to an error what to do about it.
func WithHint(err error, hint string) error { return hintedError{err, hint} }

// HintOf returns what to do about an error, empty where nothing is known.
func HintOf(err error) string {
	var hinted hintedError
	if errors.As(err, &hinted) {
		return hinted.hint
	}

	return ""
}

// hintedError is an error with what to do about it.
type hintedError struct {
	error
	hint string
}

func (e hintedError) Unwrap() error { return e.error }
