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

// Action is the action that a statement requests.
type Action string

// The actions.
const (
	// Assign assigns the content, a manifest or an assignment document, to a key.
	Assign Action = "assign"
	// Remove ends the assignment of a key. It has no content.
	Remove Action = "remove"
	// Ensure is an ensure request to the nodes of a family.
	Ensure Action = "ensure"
	// Run is a run request to the nodes of a family.
	Run Action = "run"
	// Preview asks the nodes of a family for the plan of an assignment.
	Preview Action = "preview"
	// Cancel cancels an ensure or run request of the nodes of a family.
	Cancel Action = "cancel"
	// Pause makes the nodes of a family observe without changing anything. Resume ends the pause and has no
	// content.
	Pause  Action = "pause"
	Resume Action = "resume"
	// Groups sets the groups that operators assign to a node. The target is the node's family.
	Groups Action = "groups"
)

// IsOfFamily reports whether the target of the action is a family, and not a key.
func (a Action) IsOfFamily() bool {
	return a == Ensure || a == Run || a == Preview || a == Cancel || a == Pause || a == Resume || a == Groups
}

func (a Action) isKnown() bool { return a == Assign || a == Remove || a.IsOfFamily() }

// Statement is the signed document (io.muster.v1.statement): action, target, content and time. The signature
// covers all of them.
type Statement struct {
	Protocol string `json:"protocol"`
	// Fleet is the prefix of the fleet.
	Fleet  string `json:"fleet" jsonschema_description:"Prefix of the fleet's buckets, streams and subjects"`
	Action Action `json:"action" jsonschema:"enum=assign,enum=remove,enum=ensure,enum=run,enum=preview,enum=cancel,enum=pause,enum=resume,enum=groups"`
	// Target is a key, or a family if the action IsOfFamily.
	Target  string `json:"target" jsonschema_description:"Key of the assignment; of all else, node.<node> or group.<group>"`
	Content string `json:"content,omitempty" jsonschema_description:"The manifest, assignment document, request, pause or groups"`
	// Issued is the time of signing. It also is a counter with nanosecond resolution: each signature of a key
	// is later than the one before, whatever the clock shows.
	Issued time.Time `json:"issued" jsonschema_description:"Time of signing, to the nanosecond; grows with each signature of a key"`
	// Expires is the time after which no node accepts the statement. An accepted statement stays active.
	Expires time.Time `json:"expires" jsonschema_description:"Time after which no node accepts it"`
}

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

func (s Statement) check() error {
	switch {
	case s.Protocol != model.ProtocolStatement:
		return fmt.Errorf("the protocol is %q, it must be %s", bound(s.Protocol), model.ProtocolStatement)
	case !s.Action.isKnown():
		return fmt.Errorf("the action %q is not known", bound(string(s.Action)))
	case s.Action.IsOfFamily() && model.CheckFamily(s.Target) != nil, !s.Action.IsOfFamily() && model.CheckKey(s.Target) != nil:
		return fmt.Errorf("the target %q is not one of the action %s", bound(s.Target), s.Action)
	case !utf8.ValidString(s.Content): // JSON would replace invalid UTF-8
		return errors.New("the content is not UTF-8 (push it as a bundle)")
	case (s.Action == Remove || s.Action == Resume) && s.Content != "":
		return errors.New("a removal has no content")
	case s.Issued.IsZero() || !s.Expires.After(s.Issued):
		return errors.New("it expires before it is issued")
	default:
		return nil
	}
}

// Family returns the family of the target.
func (s Statement) Family() string {
	if s.Action.IsOfFamily() {
		return s.Target
	}
	family, _, _ := model.SplitKey(s.Target)

	return family
}

// For returns an error unless the statement is for a fleet, an action and one of the targets. The error wraps
// ErrElsewhere.
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

const maxQuoted = 80

func bound(s string) string {
	if len(s) > maxQuoted {
		return s[:maxQuoted] + "…"
	}

	return s
}
