// Package template renders Go and Jet templates with the names of manifest expressions, and judges
// from the source how a template uses secrets. Errors name the line. It stops a template that
// does not end or recurses without end.
package template

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"runtime"
	"runtime/metrics"
	"strconv"

	"github.com/musterfleet/muster/model"
)

// Names are what a template may use, by name: values, and functions that return
// a value, or a value and an error.
type Names map[string]any

// Template is a text to be rendered. Name is the file in its positions. Left and Right
// delimit the actions; empty means the delimiters of the language.
type Template struct {
	Name, Text, Left, Right string
	// Scaffold selects the rules of scaffolds; nil selects the rules of manifests.
	Scaffold *Scaffold
}

// Scaffold changes the rules for a template of a scaffold: a missing key in a Go template is
// null, and ${ } is literal text.
type Scaffold struct {
	// Dot is the initial value of the dot.
	Dot any
}

// Limits bound what a rendering may come to. The zero value bounds nothing but
// its depth and work.
type Limits struct {
	// Bytes is the longest text.
	Bytes int64
	// Steps is how many turns of loops, templates that are called and, in Jet,
	// actions there may be; 0 means a million.
	Steps int
	// Unlimited removes the limits on steps, depth and memory, for a process with its own limits.
	Unlimited bool
	// Judge, where it is set, finds out whether the template uses a secret.
	Judge *Judge
	// Print, where it is set, returns what a Jet template writes for a value that it prints.
	Print func(text string) string
}

// Error is a template that is not valid, or that fails when it is rendered.
type Error struct {
	// Pos is the file and the line, 0 where the library names none.
	Pos  model.Position
	Hint string
	// Syntax reports whether the template is invalid whatever it is rendered with.
	Syntax bool
	// Message is in the words of the library, without the place.
	Message string
	Err     error
}

// Error returns the position and the problem.
func (e *Error) Error() string { return e.Pos.String() + ": " + e.Message }

// Unwrap returns the error of the library.
func (e *Error) Unwrap() error { return e.Err }

// failure matches the place that the libraries put in front of their errors:
// group 1 and 2 at run time in Jet, 3 and 4 otherwise.
var failure = regexp.MustCompile(`(?s)^(?:Jet Runtime Error \("(.*?)":(\d+)\)|template: (.*?):(\d+)(?::\d+)?): (.*)$`)

// newError moves the positions at the start of a library error into Pos. The innermost position wins:
// the position in the included template.
func newError(name string, err error) *Error {
	out := &Error{Pos: model.Position{File: name}, Message: err.Error(), Err: err}
	for found := failure.FindStringSubmatch(out.Message); found != nil; found = failure.FindStringSubmatch(out.Message) {
		out.Pos.File, out.Message = found[1]+found[3], found[5]
		out.Pos.Line, _ = strconv.Atoi(found[2] + found[4])
		out.Syntax = found[3] != ""
	}

	return out
}

// The errors of a template that is stopped.
var (
	// errTooLarge is a text longer than Limits allow.
	errTooLarge = errors.New("it gives more than is allowed")
	// errTooMuch is one with more steps than Limits allow.
	errTooMuch = errors.New("it exceeds the work limit")
	// errTooDeep means that a template calls itself again and again.
	errTooDeep = errors.New("it recurses too deep")
	// errTooBig means that the values of a template take too much memory.
	errTooBig = errors.New("its values take too much memory")
)

// maxSteps is how many steps a rendering may have unless Limits say it.
const maxSteps = 1 << 20

// output is the result so far, with its use of resources.
type output struct {
	ctx    context.Context
	limits Limits
	text   bytes.Buffer
	steps  int
	// heap is what the process had allocated when it was first measured.
	heap uint64
	// stopped is why the rendering ends, once a limit is reached.
	stopped error
}

// maxFrames is how deep the stack may be; a template needs several frames a level.
const maxFrames = 20_000

// lookEvery is how many steps there are between two looks at the stack and the
// memory, which are not free.
const lookEvery = 64

// maxHeap is how much more memory than at its beginning the process may have
// allocated while something is rendered.
const maxHeap = 256 << 20

// step counts a step, and returns an error if a limit is exceeded or the context ended. A step with an
// assignment may double the memory.
func (o *output) step(assigns bool) error {
	o.steps++
	o.stopped = cmp.Or(o.stopped, o.exceeded(assigns))

	return o.stopped
}

func (o *output) exceeded(assigns bool) error {
	if o.limits.Unlimited {
		return context.Cause(o.ctx)
	}
	if o.steps > cmp.Or(o.limits.Steps, maxSteps) {
		return errTooMuch
	}
	if o.steps%lookEvery == 0 {
		var frame [1]uintptr
		if runtime.Callers(maxFrames, frame[:]) > 0 {
			return errTooDeep
		}
	}
	if assigns || o.steps%lookEvery == 0 {
		heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(heap)
		o.heap = cmp.Or(o.heap, heap[0].Value.Uint64())
		if heap[0].Value.Uint64() > o.heap+maxHeap {
			return errTooBig
		}
	}

	return context.Cause(o.ctx)
}

// Write appends to the text, up to the limit.
func (o *output) Write(p []byte) (int, error) {
	if o.limits.Bytes > 0 && int64(o.text.Len()+len(p)) > o.limits.Bytes {
		o.stopped = fmt.Errorf("%w: %d bytes", errTooLarge, o.limits.Bytes)
		return 0, o.stopped
	}

	return o.text.Write(p)
}

// Values are the names that are no functions.
func (n Names) Values() map[string]any { return n.only(false) }

// Functions are the names that are.
func (n Names) Functions() map[string]any { return n.only(true) }

func (n Names) only(functions bool) map[string]any {
	out := maps.Clone(map[string]any(n))
	maps.DeleteFunc(out, func(_ string, v any) bool { return (reflect.ValueOf(v).Kind() == reflect.Func) != functions })

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

// call calls a function that returns a value, or a value and an error.
func call(fn reflect.Value, in []reflect.Value) (any, error) {
	results := fn.Call(in)
	err, _ := results[len(results)-1].Interface().(error)

	return results[0].Interface(), err
}
