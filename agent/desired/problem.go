package desired

import (
	"errors"
	"fmt"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// open opens the envelope of a value. The policy requires an envelope.
func open(policy signed.Policy, value []byte) (*signed.Envelope, error) {
	if signed.IsEnvelope(value) {
		return signed.Open(value)
	}

	return nil, fmt.Errorf("%w: this node demands signatures of %d of its `trust.keys`", signed.ErrUnsigned, policy.Threshold)
}

// permanent returns the permanent reasons. A signature from the future is transient.
func permanent() []error {
	return []error{signed.ErrUnsigned, signed.ErrSignatures, signed.ErrElsewhere, signed.ErrMalformed, signed.ErrOlder, signed.ErrExpired}
}

// problem returns a permanent error as a problem with its remedy.
func problem(name string, hint func(reason error) string, err error) error {
	for _, reason := range permanent() {
		if errors.Is(err, reason) {
			return model.Problems{{Pos: model.Position{File: name}, Message: err.Error(), Hint: hint(reason), Cause: reason}}
		}
	}

	return err
}

// assignmentHint returns the remedy for an assignment or a removal.
func assignmentHint(reason error) string {
	switch reason {
	case signed.ErrUnsigned:
		return "push or remove it with --sign-key FILE, or sign what is there with muster fleet sign"
	case signed.ErrSignatures:
		return "sign it with muster fleet sign, or add the key to `trust.keys` of this node"
	case signed.ErrOlder:
		return "an old version came back; for the one that should hold: muster fleet rollback with --sign-key FILE"
	case signed.ErrExpired:
		return "sign it again: muster fleet sign --renew"
	default:
		return "push it again with --sign-key FILE"
	}
}

// requestHint returns the remedy for a request. Actions have the names of their commands.
func requestHint(action signed.Action) func(reason error) string {
	command := "muster fleet " + string(action)
	if action == signed.Cancel {
		command = "muster fleet ensure cancel"
	}
	command += " --sign-key FILE"

	return func(reason error) string {
		if reason == signed.ErrSignatures {
			return command + ", once for each key, or add the key to `trust.keys` of this node"
		}
		return command + " signs it"
	}
}

// pauseHint returns the remedy for a pause or its removal.
func pauseHint(error) string {
	return "muster fleet pause or resume with --sign-key FILE, once for each key"
}

// groupsHint returns the remedy for groups.
func groupsHint(error) string {
	return "muster fleet group with --sign-key FILE, once for each key"
}
