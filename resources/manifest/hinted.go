package manifest

import "errors"

// withHint adds to an error what to do about it.
func withHint(err error, hint string) error { return hintedError{err, hint} }

// hintOf returns what to do about an error, empty where nothing is known.
func hintOf(err error) string {
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
