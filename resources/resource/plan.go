package resource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// Plan holds the pending changes of a resource. The zero value means that the resource is in its desired
// state.
type Plan struct {
	Changes []model.Change
	// Unrefreshed means that the plan ignores a refresh: its changes are pending without one.
	Unrefreshed bool
	// Always means that the changes are pending in every run, whatever the state. They do not repair
	// drift.
	Always bool
	// Missing are missing things; nothing is due for them. If another resource of the run would
	// provide one of them, noop reports an unknown result. Missing, Removes and the needs of Fails use
	// the words of Relations.
	Missing []string
	// Removes are additional removals of the changes. If another resource of the run provides one
	// of them, the changes are refused.
	Removes []string
	// ComparedWith is the content that the state was compared with. If an earlier resource would change it,
	// noop reports an unknown result. A word with a slash at the end means everything below a
	// directory.
	ComparedWith []string
	// UndueFor cancels the changes if another resource of the run provides it, because the changes would undo
	// the work of that resource. Most plans leave it empty.
	UndueFor string
	// Paths lists the files that the changes write or remove. Types set it if their Relations do not
	// name each file.
	Paths []string
	// Beside passes facts about other resources of the call from Plan to ApplyAll. Only the type that sets it reads
	// it.
	Beside any
	// Fails is the expected error of the changes. Noop reports it, and a run still makes the
	// changes.
	Fails error
}

// Empty reports whether there are no changes.
func (p Plan) Empty() bool { return len(p.Changes) == 0 }

// Has reports whether an action is among the changes.
func (p Plan) Has(action string) bool {
	return slices.ContainsFunc(p.Changes, func(c model.Change) bool { return c.Action == action })
}

// Add appends a change.
func (p *Plan) Add(c model.Change) { p.Changes = append(p.Changes, c) }

// Message returns the messages of the changes: "Would have downloaded. Would have
// extracted".
func (p Plan) Message() string {
	var words []string
	for i := range p.Changes {
		if m := p.Changes[i].Message; m != "" {
			words = append(words, m)
		}
	}

	return strings.Join(words, ". ")
}

// Outcome is the result of Apply. The zero value means that all planned changes were made.
type Outcome struct {
	// ExitCode is the exit code of the command, nil if no command ran.
	ExitCode *int
	// Unchanged means that nothing changed, such as after an upgrade without a newer version.
	Unchanged bool
	// Untouched means that a change failed and changed nothing. Without it a failed change may have
	// changed anything.
	Untouched bool
	// At is the time of the change: a subscriber that started later needs no refresh. The zero time
	// means the end of the change.
	At time.Time
	// Before and After are versions, if there are any.
	Before, After string
	// Values are the values for later resources.
	Values map[string]any
	// Children counts the outcomes of a child manifest's resources.
	Children model.Counts
	// AtEnd, unless nil, makes the change or the rest of it at the end of the run, after all other
	// resources, because it ends muster itself. Until then the resource counts as changed and
	// refreshed. An error fails the resource. A stopped run skips it.
	AtEnd func(context.Context) error
}

// BatchError is the error of an ApplyAll that knows which changes failed. It has the length of the specs,
// and is nil for successful changes.
type BatchError []error

// Err returns e, or nil if no change failed.
func (e BatchError) Err() error {
	if errors.Join(e...) == nil {
		return nil
	}

	return e
}

// Error joins the texts of the errors.
func (e BatchError) Error() string { return fmt.Sprint(errors.Join(e...)) }

// ErrUnsettled is a state that will change soon without muster. The engine observes the resource once more,
// alone, before it decides. A type waits as long as the state is likely to settle.
var ErrUnsettled = errors.New("is changing state")

// Concluded is an error in a BatchError: the change was made and failed, or used its whole timeout.
// The engine repeats it only as often as the property retry allows.
type Concluded struct{ Err error }

// Error returns the text of the error behind it.
func (c Concluded) Error() string { return c.Err.Error() }

// Unwrap returns the error behind it.
func (c Concluded) Unwrap() error { return c.Err }

// PrerequisiteError is an error about a missing thing that another resource of the run may provide. In noop
// it is not a failure. Needs are in the words of Relations, such as path:/opt/app; one of them is enough.
type PrerequisiteError struct {
	Needs []string
	Err   error
}

// Error returns the text of the error behind it.
func (e PrerequisiteError) Error() string { return e.Err.Error() }

// Unwrap returns the error behind it.
func (e PrerequisiteError) Unwrap() error { return e.Err }

// Prerequisites returns the needs of a PrerequisiteError in err, nil for any other error.
func Prerequisites(err error) []string {
	var e PrerequisiteError
	errors.As(err, &e)

	return e.Needs
}

// CommandError is an error with the output of a command. A sensitive resource shows only Err.
type CommandError struct {
	Err    error
	Output string
}

// Error returns the error and the output.
func (e CommandError) Error() string { return e.Err.Error() + ": " + e.Output }

// Unwrap returns the error without the output.
func (e CommandError) Unwrap() error { return e.Err }

// WithoutOutput returns the text of err without the output of commands.
func WithoutOutput(err error) string { return withoutOutput(err.Error(), err) }

// withoutOutput follows all joined errors, because several commands may have output.
func withoutOutput(text string, err error) string {
	if e, ok := err.(CommandError); ok && e.Output != "" {
		text = strings.ReplaceAll(text, e.Output, model.Redacted)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			text = withoutOutput(text, inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			text = withoutOutput(text, inner)
		}
	}

	return text
}
