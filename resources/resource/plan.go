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

// Plan is the changes that are due to a resource. The zero value means that it
// is in its desired state.
type Plan struct {
	Changes []model.Change
	// Unrefreshed means that the plan ignores a refresh: its changes are due without one.
	Unrefreshed bool
	// Always means that the changes are due at every run, whatever the state: they repair
	// no drift.
	Always bool
	// Missing are missing things; nothing is due for them. If another resource of the run would
	// provide one of them, noop reports an unknown result. Missing, Removes and the needs of Fails use
	// the words of Relations.
	Missing []string
	// Removes are additional removals of the changes. If another resource of the run provides one
	// of them, the changes are refused.
	Removes []string
	// ComparedWith is the content that the state was compared with. Where a resource before would
	// change it, noop does not know whether more is due. A word that ends with a slash stands for
	// everything below a directory.
	ComparedWith []string
	// UndueFor makes nothing due if another resource of the run provides it, because the changes
	// would undo that. It is empty for most plans.
	UndueFor string
	// Paths lists the files that the changes write or remove. Types set it if their Relations do not
	// name each file.
	Paths []string
	// Fails is why the changes are expected to fail, the error of noop. A run makes
	// them all the same.
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

// Outcome is the result of Apply. The zero value means that everything planned
// was done.
type Outcome struct {
	// ExitCode is the exit code of the command, nil if no command ran.
	ExitCode *int
	// Unchanged means that nothing changed, as by an upgrade that found nothing newer.
	Unchanged bool
	// Untouched means, with an error, that everything was left as it was. Without it
	// a failed change may have done anything.
	Untouched bool
	// At is when subscribers have to read again what changed; the zero time means the
	// end of the change.
	At time.Time
	// Before and After are versions, where there are any.
	Before, After string
	// Values are what later resources may take.
	Values map[string]any
	// Children counts the outcomes of a child manifest's resources.
	Children model.Counts
	// AtEnd, unless nil, makes the change, or the rest of it, at the end of the run, once no other
	// resource is left: for what ends muster itself. Until then the resource counts as changed,
	// and its refresh as made. An error fails the resource. A run that is stopped leaves it out.
	AtEnd func(context.Context) error
}

// BatchError is the error of an ApplyAll that knows which of its changes failed.
// It is as long as the specs, and nil for the changes that were made.
type BatchError []error

// Err returns e, nil when nothing failed.
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

// TimedOut is an error within a BatchError: the change used up the timeout of its
// resource, and is made again only as often as retry says.
type TimedOut struct{ Err error }

// Error returns the text of the error behind it.
func (t TimedOut) Error() string { return t.Err.Error() }

// Unwrap returns the error behind it.
func (t TimedOut) Unwrap() error { return t.Err }

// Concluded is an error within a BatchError of a change that was made and failed. Only the
// property retry repeats it.
type Concluded struct{ Err error }

// Error returns the text of the error behind it.
func (c Concluded) Error() string { return c.Err.Error() }

// Unwrap returns the error behind it.
func (c Concluded) Unwrap() error { return c.Err }

// PrerequisiteError is an error about something that does not exist yet and that
// another resource of the run may provide: in noop that is no failure. Needs are
// in the words of Relations, for example path:/opt/app; any of them is enough.
type PrerequisiteError struct {
	Needs []string
	Err   error
}

// Error returns the text of the error behind it.
func (e PrerequisiteError) Error() string { return e.Err.Error() }

// Unwrap returns the error behind it.
func (e PrerequisiteError) Unwrap() error { return e.Err }

// Prerequisites returns the needs of a PrerequisiteError within err, nil for any
// other error.
func Prerequisites(err error) []string {
	var e PrerequisiteError
	errors.As(err, &e)

	return e.Needs
}

// CommandError is an error with what a command printed about it. Of a sensitive
// resource only Err is shown.
type CommandError struct {
	Err    error
	Output string
}

// Error returns the error and the output.
func (e CommandError) Error() string { return e.Err.Error() + ": " + e.Output }

// Unwrap returns the error without the output.
func (e CommandError) Unwrap() error { return e.Err }

// WithoutOutput returns the text of err without what commands printed.
func WithoutOutput(err error) string { return withoutOutput(err.Error(), err) }

// withoutOutput goes through all that is joined in err, for more than one
// command may have printed something.
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
