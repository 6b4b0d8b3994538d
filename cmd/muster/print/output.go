package print

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// Output is standard output that keeps its first error, so that a command whose
// output was lost fails, whatever wrote it.
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

// WithoutReader returns an error without those of a reader of standard output that left: it has what it wanted.
func WithoutReader(err error) error {
	switch all := err.(type) {
	case nil:
		return nil
	case interface{ Unwrap() []error }:
		var rest []error
		for _, one := range all.Unwrap() {
			if one = WithoutReader(one); one != nil {
				rest = append(rest, one)
			}
		}
		if len(rest) == len(all.Unwrap()) {
			return err
		}
		return errors.Join(rest...)
	}
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) && failed.Path == os.Stdout.Name() && errors.Is(failed.Err, syscall.EPIPE) {
		return nil
	}

	return err
}

// DiscardErrors is a writer whose errors are lost: fisk panics where it cannot
// print its help. Output keeps them.
type DiscardErrors struct{ io.Writer }

// Write writes b as far as possible.
func (d DiscardErrors) Write(b []byte) (int, error) {
	_, _ = d.Writer.Write(b)

	return len(b), nil
}
