package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Position is a position in a document. Lines and columns count from 1; zero means unknown.
type Position struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// String returns file:line:col without unknown parts.
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

// IsZero reports whether the position is unknown.
func (p Position) IsZero() bool { return p == Position{} }

// Problem is an error in a document, with its position and remedy. It is permanent.
type Problem struct {
	// Pos is the position. A validator that only knows the property leaves it empty for the decoder.
	Pos Position `json:"position,omitzero"`
	// Property is the property concerned, if any.
	Property string `json:"property,omitempty"`
	// Message describes the problem, in lower case, without a full stop.
	Message string `json:"message"`
	// Hint is the remedy.
	Hint string `json:"hint,omitempty"`
	// Cause is a sentinel that errors.Is finds, if any.
	Cause error `json:"-"`
	// More is the number of omitted problems, in the last one of Problems.
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

// Problems lists the problems of a document: the first MaxProblems, and the number of others. The zero value
// is ready to use and means that the document is valid.
type Problems []Problem

// MaxProblems limits the reported problems of a document.
const MaxProblems = 200

// Add appends a problem at a position. The hint may be empty.
func (p *Problems) Add(pos Position, hint, format string, args ...any) {
	p.AddMade(func() Problem { return Problem{Pos: pos, Hint: hint, Message: fmt.Sprintf(format, args...)} })
}

// AddMade appends the problem that make returns. It does not call make if the list is full.
func (p *Problems) AddMade(make func() Problem) {
	if p.Full() {
		p.Append(Problem{More: 1})
		return
	}
	p.Append(make())
}

// Full reports whether further problems are only counted.
func (p Problems) Full() bool { return len(p) >= MaxProblems }

// Append appends problems up to the limit.
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

// Count returns the number of problems, including the omitted ones.
func (p Problems) Count() int {
	count := 0
	for i := range p {
		count += max(p[i].More, 1)
	}

	return count
}

// Joined returns the problems of several sources in document order, up to the limit.
func Joined(problems Problems) Problems {
	var out Problems
	out.Append(problems.Sorted()...)

	return out
}

// ProblemAt returns one problem, as Problems.Add appends it.
func ProblemAt(pos Position, hint, format string, args ...any) Problems {
	var out Problems
	out.Add(pos, hint, format, args...)

	return out
}

// Property appends a problem of a property. The decoder adds the position.
func (p *Problems) Property(property, hint, format string, args ...any) {
	p.Append(Problem{Property: property, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

// Error returns the problems in document order, one per line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p.Sorted() {
		lines[i] = problem.Error()
	}

	return strings.Join(lines, "\n")
}

// Unwrap returns all problems, for errors.Is and errors.As.
func (p Problems) Unwrap() []error {
	errs := make([]error, len(p))
	for i := range p {
		errs[i] = p[i]
	}

	return errs
}

// Err returns the problems as an error, or nil if there are none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}

	return p
}

// Sorted returns the problems by file, line and column. The count of omitted problems comes last.
func (p Problems) Sorted() Problems {
	out := slices.Clone(p)
	slices.SortStableFunc(out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(min(a.More, 1), min(b.More, 1)), cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})

	return out
}

// FindProblems returns the problems in an error, and reports whether there are any.
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

// AsProblems returns the problems in an error. Any other error becomes one problem without a position.
func AsProblems(err error) Problems {
	problems, found := FindProblems(err)
	if err != nil && !found {
		problems = Problems{{Message: err.Error(), Cause: err}}
	}

	return problems
}

// Sentinel errors of resources. Callers wrap them with %w.
var (
	// ErrInvalidRef means that a reference is not type#name.
	ErrInvalidRef = errors.New("invalid resource reference")
	// ErrResourceInvalid means that properties of a resource are not valid. It is permanent.
	ErrResourceInvalid = errors.New("resource invalid")
	// ErrResourceNameRequired means that a resource has no name.
	ErrResourceNameRequired = errors.New("resource name is required")
	// ErrUnknownType means that muster has no type of that name.
	ErrUnknownType = errors.New("unknown resource type")
	// ErrProviderNotFound means that the type has no provider of that name.
	ErrProviderNotFound = errors.New("provider not found")
	// ErrNoSuitableProvider means that no provider of the type can manage this node.
	ErrNoSuitableProvider = errors.New("no suitable provider")
	// ErrDesiredStateFailed means that a resource is not in its desired state after apply.
	ErrDesiredStateFailed = errors.New("desired state not achieved")
)

// Sentinel errors of stored values. Callers wrap them with %w.
var (
	// ErrNotFound means that an assignment, revision, bundle, object or key does not exist.
	ErrNotFound = errors.New("not found")
	// ErrControlChanged means that another operator has written a newer revision of a control document.
	ErrControlChanged = errors.New("another user has changed it, try again")
	// ErrNotPermitted reports an operation that the NATS server denies.
	ErrNotPermitted = errors.New("not permitted")
	// ErrUnusable is a stored value with invalid headers. It can be replaced or removed, but not used.
	ErrUnusable = errors.New("cannot be used")
	// ErrTooLarge means that a value exceeds the server's message limit. A larger manifest is stored as a
	// bundle.
	ErrTooLarge = errors.New("too large")
	// ErrUndeliverable means that the stream will never accept a report, for example because of its size.
	ErrUndeliverable = errors.New("report cannot be delivered")
)
