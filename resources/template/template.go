// Package template renders Go templates and Jet templates with the names that
// the expressions of a manifest know. What is wrong with a template is told
// with its place in it, and a template that does not end, or recurses without
// end, is stopped.
package template

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"runtime/metrics"
	"strings"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

// Names are what a template may use, by name: values, and functions that give
// a value, or a value and an error.
type Names map[string]any

// Template is a text to be rendered. Name is what its places are called.
type Template struct{ Name, Text string }

// Limits bound what a rendering may come to. The zero value bounds nothing but
// its depth and work.
type Limits struct {
	// Bytes is the longest text.
	Bytes int64
	// Steps is how many turns of loops, templates that are called and, in Jet,
	// actions there may be; 0 means a million.
	Steps int
	// Again, where it is set, ties a rendering of Go to another one.
	Again *Again
}

// Error is a template that is not valid, or that fails when it is rendered.
type Error struct {
	// Pos is its place; of one that only names a line, the column is where the
	// first action of that line begins.
	Pos  model.Position
	Hint string
	// Syntax says that the template is not valid whatever it is rendered with.
	Syntax bool
	Err    error
}

// Error gives the place and what is wrong.
func (e *Error) Error() string { return e.Pos.String() + ": " + e.Err.Error() }

// Unwrap gives the error without its place.
func (e *Error) Unwrap() error { return e.Err }

// The errors of a template that is stopped.
var (
	// ErrTooLarge is a text longer than Limits allow.
	ErrTooLarge = errors.New("it gives more than is allowed")
	// ErrTooMuch is one with more steps than Limits allow.
	ErrTooMuch = errors.New("it does too much work")
	// ErrTooDeep is one that calls itself again and again.
	ErrTooDeep = errors.New("it recurses too deep")
	// ErrTooBig is one whose values take too much memory.
	ErrTooBig = errors.New("its values take too much memory")
)

// stops are the errors that end a rendering wherever it is.
var stops = []error{ErrTooMuch, ErrTooDeep, ErrTooBig}

// maxSteps is how many steps a rendering may have unless Limits say it.
const maxSteps = 1 << 20

// output is what has been rendered so far, and what that took.
type output struct {
	ctx    context.Context
	limits Limits
	text   bytes.Buffer
	steps  int
	// heap is what the process had allocated when its memory was first looked at.
	heap uint64
}

// maxFrames is how deep the stack may be; a template needs several frames a level.
const maxFrames = 20_000

// lookEvery is how many steps there are between two looks at the stack and the
// memory, which are not free.
const lookEvery = 64

// maxHeap is how much more memory than at its beginning the process may have
// allocated while something is rendered.
const maxHeap = 256 << 20

// step counts a turn, and ends the rendering with its context. A step that
// assigns may double what there is, and so may the next.
func (o *output) step(assigns bool) error {
	if o.steps++; o.steps > cmp.Or(o.limits.Steps, maxSteps) {
		return ErrTooMuch
	}
	if o.steps%lookEvery == 0 {
		var frame [1]uintptr
		if runtime.Callers(maxFrames, frame[:]) > 0 {
			return ErrTooDeep
		}
	}
	if assigns || o.steps%lookEvery == 0 {
		heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(heap)
		o.heap = cmp.Or(o.heap, heap[0].Value.Uint64())
		if heap[0].Value.Uint64() > o.heap+maxHeap {
			return ErrTooBig
		}
	}

	return context.Cause(o.ctx)
}

func (o *output) Write(p []byte) (int, error) {
	if o.limits.Bytes > 0 && int64(o.text.Len()+len(p)) > o.limits.Bytes {
		return 0, fmt.Errorf("%w: %d bytes", ErrTooLarge, o.limits.Bytes)
	}

	return o.text.Write(p)
}

// Values are the names that are no functions.
func (n Names) Values() map[string]any {
	out := maps.Clone(map[string]any(n))
	maps.DeleteFunc(out, func(_ string, v any) bool { return isFunction(v) })

	return out
}

// Functions are the names that are.
func (n Names) Functions() map[string]any {
	out := maps.Clone(map[string]any(n))
	maps.DeleteFunc(out, func(_ string, v any) bool { return !isFunction(v) })

	return out
}

// Call calls a function as a template does. Where an error is one of the
// arguments it wraps none of the function's.
func (n Names) Call(name string, args []any) (any, error) {
	fn := reflect.ValueOf(n[name])
	if fn.Kind() != reflect.Func {
		return nil, fmt.Errorf("there is no function %s", name)
	}
	given := make([]reflect.Value, len(args))
	for i := range args {
		given[i] = reflect.ValueOf(args[i])
	}
	in, err := arguments(name, fn.Type(), given)
	if err != nil {
		return nil, err
	}

	return call(fn, in)
}

// call calls a function that gives a value, or a value and an error.
func call(fn reflect.Value, in []reflect.Value) (any, error) {
	results := fn.Call(in)
	err, _ := results[len(results)-1].Interface().(error)

	return results[0].Interface(), err
}

func isFunction(v any) bool { return reflect.ValueOf(v).Kind() == reflect.Func }

// column gives the column of the first action in a line, 1 where there is none.
func column(text string, line int, open string) int {
	before, _, found := strings.Cut(lineOf(text, line), open)
	if !found {
		return 1
	}

	return 1 + utf8.RuneCountInString(before)
}

// columnOf gives the column of a byte in a line.
func columnOf(text string, line, offset int) int {
	text = lineOf(text, line)

	return 1 + utf8.RuneCountInString(text[:min(offset, len(text))])
}

func lineOf(text string, line int) string {
	for range line - 1 {
		_, text, _ = strings.Cut(text, "\n")
	}
	text, _, _ = strings.Cut(text, "\n")

	return text
}

// at gives the place of a byte offset.
func at(name, text string, offset int) model.Position {
	before := text[:min(offset, len(text))]
	start := strings.LastIndexByte(before, '\n') + 1

	return model.Position{File: name, Line: 1 + strings.Count(before, "\n"), Column: 1 + utf8.RuneCountInString(before[start:])}
}
