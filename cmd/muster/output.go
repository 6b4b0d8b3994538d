package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/choria-io/fisk"
)

// forms are the flags that say in which form a command gives its result.
var forms = []string{"dot", "json", "prometheus", "yaml"}

// checkForms refuses a command line that asks for several of them.
func checkForms(c *fisk.ParseContext) error {
	var given []string
	for _, e := range c.Elements {
		flag, is := e.Clause.(*fisk.FlagClause)
		if !is {
			continue
		}
		if name := flag.Model().Name; slices.Contains(forms, name) && !slices.Contains(given, "--"+name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) > 1 {
		return fmt.Errorf("give one of %s", strings.Join(given, ", "))
	}

	return nil
}

// output is standard output that remembers its first error, so that a command
// whose words nobody got does not end as if all was well, whatever printed them.
type output struct {
	io.Writer
	mu  sync.Mutex
	err error
}

// Write writes b.
func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}

	return n, err
}

// failure gives the first error. That a reader left is none: it has what it wanted.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.err, syscall.EPIPE) {
		return nil
	}

	return o.err
}

// unfailing is a writer for fisk, which panics when it cannot print its help.
// That it could not is known to output.
type unfailing struct{ w io.Writer }

// Write writes b as far as that goes.
func (u unfailing) Write(b []byte) (int, error) {
	_, _ = u.w.Write(b)

	return len(b), nil
}
