package expression

import "errors"

// WithHint adds a remedy to an error.
func WithHint(err error, hint string) error { return hintedError{err, hint} }

// HintOf returns the remedy of an error, or an empty text.
func HintOf(err error) string {
	var hinted hintedError
	if errors.As(err, &hinted) {
		return hinted.hint
	}

	return ""
}

// hintedError is an error with a remedy.
type hintedError struct {
	error
	hint string
}

func (e hintedError) Unwrap() error { return e.error }
