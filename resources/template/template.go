// Package template renders Go templates and Jet templates with the names that
// the expressions of a manifest know. What is wrong with a template is told
// with its place in it, and a template that does not end, or recurses without
// end, is stopped.
package template

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
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
	// ErrTooMuch is one with more than a million steps.
	ErrTooMuch = errors.New("it does too much work")
	// ErrTooDeep is one that calls itself again and again.
	ErrTooDeep = errors.New("it recurses too deep")
)

// maxSteps is how many turns of loops, and steps of a Jet template, a rendering may have.
const maxSteps = 1 << 20

// output is what has been rendered so far.
type output struct {
	ctx   context.Context
	limit int64
	text  bytes.Buffer
	steps int
}

func (o *output) Write(p []byte) (int, error) {
	if o.limit > 0 && int64(o.text.Len()+len(p)) > o.limit {
		return 0, fmt.Errorf("%w: %d bytes", ErrTooLarge, o.limit)
	}

	return o.text.Write(p)
}

// step counts a turn, and ends the rendering with its context.
func (o *output) step() error {
	if o.steps++; o.steps > maxSteps {
		return ErrTooMuch
	}

	return context.Cause(o.ctx)
}

// values are the names that are no functions.
func (n Names) values() map[string]any {
	out := maps.Clone(map[string]any(n))
	maps.DeleteFunc(out, func(_ string, v any) bool { return isFunction(v) })

	return out
}

// functions are the names that are.
func (n Names) functions() map[string]any {
	out := maps.Clone(map[string]any(n))
	maps.DeleteFunc(out, func(_ string, v any) bool { return !isFunction(v) })

	return out
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
