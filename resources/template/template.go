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

// Names are the names that a template may use: values, and functions that return a value, or a value and
// an error.
type Names map[string]any

// Template is a text to be rendered. Name is the file in its positions. Left and Right
// delimit the actions of a Jet template; empty means [[ and ]].
type Template struct{ Name, Text, Left, Right string }

// Limits limits a rendering. The zero value limits only the depth and the work.
type Limits struct {
	// Bytes is the maximum length of the text.
	Bytes int64
	// Steps is the maximum number of loop iterations, template calls and, in Jet, actions; 0 means a
	// million.
	Steps int
	// Judge, if set, finds out whether the template uses a secret.
	Judge *Judge
	// Print, if set, returns the output of a Jet template for a printed value.
	Print func(text string) string
}

// Error is the error of an invalid template, or of a failed rendering.
type Error struct {
	// Pos is the file and the line. The line is 0 if the library reports none.
	Pos  model.Position
	Hint string
	// Syntax reports whether the template is invalid for any data.
	Syntax bool
	// Message is the message of the library, without the position.
	Message string
	Err     error
}

// Error returns the position and the problem.
func (e *Error) Error() string { return e.Pos.String() + ": " + e.Message }

// Unwrap returns the error of the library.
func (e *Error) Unwrap() error { return e.Err }

// failure matches the position at the start of library errors: groups 1 and 2 for Jet at run time, groups 3
// and 4 otherwise.
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

// The errors of a stopped template.
var (
	// errTooLarge means that the text is longer than Limits allows.
	errTooLarge = errors.New("it gives more than is allowed")
	// errTooMuch means that the template has more steps than Limits allows.
	errTooMuch = errors.New("it exceeds the work limit")
	// errTooDeep means that a template calls itself again and again.
	errTooDeep = errors.New("it recurses too deep")
	// errTooBig means that the values of a template take too much memory.
	errTooBig = errors.New("its values take too much memory")
)

// maxSteps is the default of Limits.Steps.
const maxSteps = 1 << 20

// output is the result so far, with its use of resources.
type output struct {
	ctx    context.Context
	limits Limits
	text   bytes.Buffer
	steps  int
	// heap is the allocated memory of the process at the first measurement.
	heap uint64
	// stopped is the error of an exceeded limit.
	stopped error
}

// maxFrames is the maximum depth of the stack. A template needs several frames for each level.
const maxFrames = 20_000

// lookEvery is the number of steps between two measurements of stack and memory, which take time.
const lookEvery = 64

// maxHeap is the maximum growth of the allocated memory of the process during a rendering.
const maxHeap = 256 << 20

// step counts a step, and returns an error if a limit is exceeded or the context ended. A step with an
// assignment may double the memory.
func (o *output) step(assigns bool) error {
	o.steps++
	o.stopped = cmp.Or(o.stopped, o.exceeded(assigns))

	return o.stopped
}

func (o *output) exceeded(assigns bool) error {
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

// Values returns the names that are not functions.
func (n Names) Values() map[string]any { return n.only(false) }

// Functions returns the names that are functions.
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

// Copy returns a copy of a value. leaf replaces every part that is neither a list nor a mapping.
func Copy(v any, leaf func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key := range v {
			out[key] = Copy(v[key], leaf)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = Copy(v[i], leaf)
		}
		return out
	default:
		return leaf(v)
	}
}

// Reveal returns a tree in which text(secret) replaces each secret. It returns the same tree if it has no
// secrets.
func Reveal[T any](v any, text func(model.Secret) T) any {
	if !Holds(v) {
		return v
	}

	return Copy(v, func(v any) any {
		if secret, is := v.(model.Secret); is {
			return text(secret)
		}
		return v
	})
}
