package print

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"golang.org/x/term"
)

// The colours, as codes of a terminal.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	grey   = "90"
)

func colour(text, code string) string { return "\x1b[" + code + "m" + text + "\x1b[0m" }

// terminal returns the terminal behind a writer, or nil.
func terminal(w io.Writer) *os.File {
	if out, ok := w.(*Output); ok {
		w = out.w
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}

	return nil
}

// IsTerminal reports whether a writer is a terminal.
func IsTerminal(w io.Writer) bool { return terminal(w) != nil }

// IsPipe reports whether the output goes to another program.
func (p Printer) IsPipe() bool {
	w := p.Out
	if out, ok := w.(*Output); ok {
		w = out.w
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()

	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

// hasColour reports whether a writer is a terminal and NO_COLOR is not set.
func hasColour(w io.Writer) bool { return IsTerminal(w) && os.Getenv("NO_COLOR") == "" }

// Raw returns a writer for the bytes of a file. On a terminal it makes control characters visible.
func (p Printer) Raw() io.Writer {
	if IsTerminal(p.Out) {
		return visible{p.Out}
	}

	return p.Out
}

// width returns the width of the terminal in characters, 0 if it is unknown or Out is no terminal.
func (p Printer) width() int {
	f := terminal(p.Out)
	if f == nil {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}

	return width
}

// Progress is a line on a terminal that the next line overwrites. Without a terminal it writes nothing.
type Progress struct {
	w     *os.File
	width int
	shown bool
}

// Progress returns a progress line on Err.
func (p Printer) Progress() *Progress {
	f := terminal(p.Err)
	if f == nil {
		return &Progress{}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}

	return &Progress{w: f, width: width}
}

// Show replaces the line.
func (p *Progress) Show(format string, args ...any) {
	if p.w == nil {
		return
	}
	text := []rune(Text(fmt.Sprintf(format, args...)))
	fmt.Fprintf(p.w, "\r\x1b[K%s", string(text[:min(len(text), p.width-1)]))
	p.shown = true
}

// Clear removes the line, before other output.
func (p *Progress) Clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// Clear clears the terminal, so that the next output replaces the previous output.
func (p Printer) Clear() {
	if IsTerminal(p.Out) {
		_, _ = io.WriteString(p.Out, "\x1b[H\x1b[2J")
	}
}

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
