package resource

import (
	"errors"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/model"
)

// Plan is the changes that are due to a resource. The zero value means that it
// is in its desired state.
type Plan struct {
	Changes []model.Change
	// Unrefreshed says that a refresh was ignored: what is due is due without it.
	Unrefreshed bool
}

// Empty says that nothing is due.
func (p Plan) Empty() bool { return len(p.Changes) == 0 }

// Has says that an action is among the changes.
func (p Plan) Has(action string) bool {
	for i := range p.Changes {
		if p.Changes[i].Action == action {
			return true
		}
	}

	return false
}

// Add appends a change.
func (p *Plan) Add(c model.Change) { p.Changes = append(p.Changes, c) }

// Message joins the words of the changes as noop says them: "Would have
// downloaded. Would have extracted".
func (p Plan) Message() string {
	var words []string
	for i := range p.Changes {
		if m := p.Changes[i].Message; m != "" {
			words = append(words, m)
		}
	}

	return strings.Join(words, ". ")
}

// Outcome is what Apply says came of a plan. The zero value means that
// everything planned was done.
type Outcome struct {
	// ExitCode is that of a command, nil when none ran.
	ExitCode *int
	// Unchanged says that nothing came of the plan after all: an upgrade that found nothing newer.
	Unchanged bool
	// Untouched means, with an error, that everything was left as it was. Without it
	// a failed change may have done anything.
	Untouched bool
	// Before and After are versions, where there are any.
	Before, After string
	// Values are what later resources may take.
	Values map[string]any
	// Children are what came of a child manifest's resources.
	Children model.Counts
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

// TimedOut is an error within a BatchError: the change used up the timeout of its
// resource, and is made again only as often as retry says.
type TimedOut struct{ Err error }

// Error returns the text of the error behind it.
func (t TimedOut) Error() string { return t.Err.Error() }

// Unwrap returns the error behind it.
func (t TimedOut) Unwrap() error { return t.Err }

// Missing is an error about something that is not there yet, and that another
// resource of the run may bring: in noop that is not a failure. Need is in the
// words of Relations, for example path:/opt/app, and any of Or would do as well.
type Missing struct {
	Need string
	Or   []string
	Err  error
}

// Error gives the error's own words.
func (m Missing) Error() string { return m.Err.Error() }

// Unwrap gives the error behind it.
func (m Missing) Unwrap() error { return m.Err }

// MissingNeeds gives the needs of a Missing within err, one of which is enough,
// and none for any other error.
func MissingNeeds(err error) []string {
	var m Missing
	if !errors.As(err, &m) {
		return nil
	}

	return append([]string{m.Need}, m.Or...)
}

// Said is an error with what a command printed about it. Of a sensitive
// resource only Err is told.
type Said struct {
	Err    error
	Output string
}

// Error gives the error and the output.
func (s Said) Error() string { return s.Err.Error() + ": " + s.Output }

// Unwrap gives the error without the output.
func (s Said) Unwrap() error { return s.Err }

// WithoutOutput gives the words of err without what commands printed.
func WithoutOutput(err error) string { return withoutOutput(err.Error(), err) }

// withoutOutput goes through all that is joined in err, for more than one
// command may have printed something.
func withoutOutput(text string, err error) string {
	if said, ok := err.(Said); ok && said.Output != "" {
		text = strings.ReplaceAll(text, said.Output, model.Redacted)
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
