package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Position is a place in a document. Lines and columns count from 1; zero
// means unknown.
type Position struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// String returns file:line:col, leaving out what is unknown.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
}

// IsZero reports whether nothing is known of the place.
func (p Position) IsZero() bool { return p == Position{} }

// Problem is one thing wrong in a document, with its place and remedy. It is
// an error, and never passes by trying again.
type Problem struct {
	// Pos is its place; a validator that only knows the property leaves it to the decoder.
	Pos Position `json:"position,omitzero"`
	// Property is the property concerned, if any.
	Property string `json:"property,omitempty"`
	// Message is what is wrong, in lower case, without a full stop.
	Message string `json:"message"`
	// Hint is what to do about it.
	Hint string `json:"hint,omitempty"`
	// Cause is a sentinel that errors.Is finds, if any.
	Cause error `json:"-"`
	// More counts the problems that were left out, in the last one of Problems.
	More int `json:"more,omitempty"`
}

// Error returns "file:line:col: message (hint)", long values cut.
func (p Problem) Error() string {
	if p.More > 0 {
		return fmt.Sprintf("and %d more", p.More)
	}
	var b strings.Builder
	if !p.Pos.IsZero() {
		b.WriteString(p.Pos.String())
		b.WriteString(": ")
	}
	b.WriteString(ShortenWords(p.Message))
	if p.Hint != "" {
		b.WriteString(" (" + ShortenWords(p.Hint) + ")")
	}

	return b.String()
}

// Unwrap returns the sentinel behind the problem, or nil.
func (p Problem) Unwrap() error { return p.Cause }

// Problems is all that is wrong with a document, together: the first MaxProblems,
// and how many more there are. The zero value is ready to use and means that
// nothing is wrong.
type Problems []Problem

// MaxProblems is how many problems of a document are kept: nobody reads more, and
// each is longer than what is wrong.
const MaxProblems = 200

// Add appends a problem at a place, with a hint that may be empty.
func (p *Problems) Add(pos Position, hint, format string, args ...any) {
	p.AddMade(func() Problem { return Problem{Pos: pos, Hint: hint, Message: fmt.Sprintf(format, args...)} })
}

// AddMade appends the problem that make returns, which is not called where it would
// only be counted.
func (p *Problems) AddMade(make func() Problem) {
	if p.Full() {
		p.Append(Problem{More: 1})
		return
	}
	p.Append(make())
}

// Full reports whether further problems are only counted.
func (p Problems) Full() bool { return len(p) >= MaxProblems }

// Append appends problems, as far as there is room.
func (p *Problems) Append(more ...Problem) {
	for _, problem := range more {
		switch last := len(*p) - 1; {
		case p.Full() && (*p)[last].More > 0:
			(*p)[last].More += max(problem.More, 1)
		case p.Full():
			*p = append(*p, Problem{More: max(problem.More, 1)})
		default:
			*p = append(*p, problem)
		}
	}
}

// Count returns how many problems there are, also those that were left out.
func (p Problems) Count() int {
	count := 0
	for i := range p {
		count += max(p[i].More, 1)
	}

	return count
}

// Joined returns problems of several sources as one: in the order of the document,
// and bounded.
func Joined(problems Problems) Problems {
	var out Problems
	out.Append(problems.Sorted()...)

	return out
}

// ProblemAt makes problems of one, as Problems.Add appends it.
func ProblemAt(pos Position, hint, format string, args ...any) Problems {
	var out Problems
	out.Add(pos, hint, format, args...)

	return out
}

// Property appends a problem of a property, to be placed by the decoder.
func (p *Problems) Property(property, hint, format string, args ...any) {
	p.Append(Problem{Property: property, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

// Error lists the problems in the order of the document, one a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p.Sorted() {
		lines[i] = problem.Error()
	}

	return strings.Join(lines, "\n")
}

// Unwrap lets errors.Is and errors.As look into every problem.
func (p Problems) Unwrap() []error {
	errs := make([]error, len(p))
	for i := range p {
		errs[i] = p[i]
	}

	return errs
}

// Err returns the problems as an error, nil when there are none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}

	return p
}

// Sorted returns the problems by file, line and column, what was left out last; the
// order of equals is kept.
func (p Problems) Sorted() Problems {
	out := slices.Clone(p)
	slices.SortStableFunc(out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(min(a.More, 1), min(b.More, 1)), cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})

	return out
}

// FindProblems returns the problems within an error, and reports whether there
// are any.
func FindProblems(err error) (Problems, bool) {
	var all Problems
	if errors.As(err, &all) {
		return all, true
	}
	var one Problem
	if errors.As(err, &one) {
		return Problems{one}, true
	}

	return nil, false
}

// AsProblems is FindProblems where an error that has none becomes one problem
// without a place.
func AsProblems(err error) Problems {
	problems, found := FindProblems(err)
	if err != nil && !found {
		problems = Problems{{Message: err.Error(), Cause: err}}
	}

	return problems
}
