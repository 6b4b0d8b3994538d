package print_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/cmd/muster/print"
)

// TestWithoutReader: only the errors of a reader that left are dropped, wherever they are.
func TestWithoutReader(t *testing.T) {
	t.Parallel()
	left := &fs.PathError{Op: "write", Path: os.Stdout.Name(), Err: syscall.EPIPE}
	failed := errors.New("real")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"none":                 {nil, ""},
		"the reader":           {left, ""},
		"wrapped":              {fmt.Errorf("print: %w", left), ""},
		"beside another":       {errors.Join(left, failed), "real"},
		"wrapped with another": {fmt.Errorf("print: %w", errors.Join(left, failed)), "real"},
		"deep":                 {errors.Join(failed, fmt.Errorf("%w and %w", left, fmt.Errorf("x: %w", failed))), "real\nx: real"},
		"another file":         {fmt.Errorf("copy: %w", &fs.PathError{Op: "write", Path: "/x", Err: syscall.EPIPE}), "copy: write /x: broken pipe"},
		"another":              {fmt.Errorf("x: %w", failed), "x: real"},
	} {
		got := ""
		if err := print.WithoutReader(c.err); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
