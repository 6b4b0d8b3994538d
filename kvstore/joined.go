package kvstore

// Joined returns the errors that errors.Join joined, or the error itself where it is
// a single one; none for nil.
func Joined(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}

	return []error{err}
}
