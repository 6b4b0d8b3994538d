package signed

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

// Action is what a statement asks of nodes.
type Action string

// The actions.
const (
	// Assign is the value of a key: a manifest or an assignment document.
	Assign Action = "assign"
	// Remove ends the assignment of a key. It has no content.
	Remove Action = "remove"
	// Ensure is an ensure request to the nodes of a family.
	Ensure Action = "ensure"
	// Run is a run request to the nodes of a family.
	Run Action = "run"
	// Preview asks the nodes of a family what an assignment would change.
	Preview Action = "preview"
	// Cancel cancels a request of the nodes of a family, of a resource or for a run.
	Cancel Action = "cancel"
	// Pause has the nodes of a family observe and change nothing, Resume ends that. It has no
	// content.
	Pause  Action = "pause"
	Resume Action = "resume"
	// Groups is in which groups operators put a node, the target being its family.
	Groups Action = "groups"
)

// IsOfFamily reports whether the target of the action is a family, and not a key.
func (a Action) IsOfFamily() bool {
	return a == Ensure || a == Run || a == Preview || a == Cancel || a == Pause || a == Resume || a == Groups
}

// isKnown reports whether a is one of the actions.
func (a Action) isKnown() bool { return a == Assign || a == Remove || a.IsOfFamily() }

// Statement is what is signed (io.muster.v1.statement): what is asked, of whom, and
// when. The content is a part of it, so its signature covers every byte of that.
type Statement struct {
	Protocol string `json:"protocol"`
	// Fleet is the prefix of the fleet.
	Fleet  string `json:"fleet" jsonschema_description:"Prefix of the fleet's buckets, streams and subjects"`
	Action Action `json:"action" jsonschema:"enum=assign,enum=remove,enum=ensure,enum=run,enum=preview,enum=cancel,enum=pause,enum=resume,enum=groups"`
	// Target is a key, or where the action IsOfFamily, a family.
	Target  string `json:"target" jsonschema_description:"Key of the assignment; of all else, node.<node> or group.<group>"`
	Content string `json:"content,omitempty" jsonschema_description:"The manifest, assignment document, request, pause or groups"`
	// Issued is the time of signing and the counter: to the nanosecond, and a key
	// signs later than before each time, whatever the clock is.
	Issued time.Time `json:"issued" jsonschema_description:"Time of signing, to the nanosecond; grows with each signature of a key"`
	// Expires is the time after which no node accepts it any more. What was accepted
	// before stays.
	Expires time.Time `json:"expires" jsonschema_description:"Time after which no node accepts it"`
}

// decodeStatement decodes the payload of an envelope, strictly.
func decodeStatement(payload []byte) (Statement, error) {
	var s Statement
	if err := model.DecodeStrict(payload, &s); err != nil {
		return s, fmt.Errorf("%w: its statement: %w", ErrMalformed, err)
	}
	if err := s.check(); err != nil {
		return s, fmt.Errorf("%w: its statement: %w", ErrMalformed, err)
	}

	return s, nil
}

// check returns what a statement lacks.
func (s Statement) check() error {
	switch {
	case s.Protocol != model.ProtocolStatement:
		return fmt.Errorf("the protocol is %q, it must be %s", bound(s.Protocol), model.ProtocolStatement)
	case !s.Action.isKnown():
		return fmt.Errorf("the action %q is not known", bound(string(s.Action)))
	case s.Action.IsOfFamily() && model.CheckFamily(s.Target) != nil, !s.Action.IsOfFamily() && model.CheckKey(s.Target) != nil:
		return fmt.Errorf("the target %q is not one of the action %s", bound(s.Target), s.Action)
	case !utf8.ValidString(s.Content): // JSON would replace what is none
		return errors.New("the content is not UTF-8 (push it as a bundle)")
	case (s.Action == Remove || s.Action == Resume) && s.Content != "":
		return errors.New("a removal has no content")
	case s.Issued.IsZero() || !s.Expires.After(s.Issued):
		return errors.New("it expires before it is issued")
	default:
		return nil
	}
}

// Family is that of the target.
func (s Statement) Family() string {
	if s.Action.IsOfFamily() {
		return s.Target
	}
	family, _, _ := model.SplitKey(s.Target)

	return family
}

// For reports whether a statement is one of a fleet, for an action and one of some
// targets. The error wraps ErrElsewhere.
func (s Statement) For(fleet string, action Action, targets ...string) error {
	switch {
	case s.Fleet != fleet:
		return fmt.Errorf("%w: for the fleet %q, this is one of %q", ErrElsewhere, bound(s.Fleet), fleet)
	case s.Action != action:
		return fmt.Errorf("%w: to %s, not to %s", ErrElsewhere, s.Action, action)
	case !slices.Contains(targets, s.Target):
		return fmt.Errorf("%w: for %s, not for %s", ErrElsewhere, bound(s.Target), strings.Join(targets, ", "))
	default:
		return nil
	}
}

// maxQuoted is how much of an unverified text an error repeats.
const maxQuoted = 80

// bound cuts a text that nobody has verified.
func bound(s string) string {
	if len(s) > maxQuoted {
		return s[:maxQuoted] + "…"
	}

	return s
}
