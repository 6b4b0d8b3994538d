package print

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// Output is standard output. It stores its first error, so that a command fails if its output is incomplete.
type Output struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

// NewOutput returns an Output that writes to w.
func NewOutput(w io.Writer) *Output { return &Output{w: w} }

// Write writes b.
func (o *Output) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}

	return n, err
}

// Failure returns the first error. A reader that left is no error.
func (o *Output) Failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.err, syscall.EPIPE) {
		return nil
	}

	return o.err
}

// WithoutReader removes errors of a closed standard output from an error.
func WithoutReader(err error) error {
	rest, left := withoutReader(err)
	if !left {
		return err
	}

	return errors.Join(rest...)
}

// withoutReader returns the errors that err consists of, without errors of a closed output, and whether there
// were any.
func withoutReader(err error) (rest []error, left bool) {
	var parts []error
	switch e := err.(type) {
	case nil:
		return nil, false
	case *fs.PathError:
		if e.Path == os.Stdout.Name() && errors.Is(e.Err, syscall.EPIPE) {
			return nil, true
		}
	case interface{ Unwrap() []error }:
		parts = e.Unwrap()
	case interface{ Unwrap() error }:
		parts = []error{e.Unwrap()}
	}
	for _, part := range parts {
		others, is := withoutReader(part)
		rest, left = append(rest, others...), left || is
	}
	if !left {
		rest = []error{err}
	}

	return rest, left
}

// DiscardErrors is a writer that ignores errors, because fisk panics if it cannot write.
type DiscardErrors struct{ io.Writer }

// Write writes b as far as possible.
func (d DiscardErrors) Write(b []byte) (int, error) {
	_, _ = d.Writer.Write(b)

	return len(b), nil
}
