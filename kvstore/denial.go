package kvstore

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// ErrNotPermitted is an operation that the permissions of these credentials deny.
var ErrNotPermitted = errors.New("not permitted")

// Denial is an ErrNotPermitted, and the error of the client that it was made from.
type Denial struct {
	// Verb and Subject are the operation: publish to, or subscribe to.
	Verb, Subject string
	// Cause is what is wrong, with its remedy; nil where a permission is missing.
	Cause     error
	violation error
}

// Error names the operation, and the cause if it is known.
func (d *Denial) Error() string {
	text := fmt.Sprintf("%v to %s %s", ErrNotPermitted, d.Verb, d.Subject)
	if d.Cause != nil {
		text += ": " + d.Cause.Error()
	}

	return text
}

// Unwrap returns ErrNotPermitted, the error of the client and the cause.
func (d *Denial) Unwrap() []error {
	all := []error{ErrNotPermitted, d.violation}
	if d.Cause != nil {
		all = append(all, d.Cause)
	}

	return all
}

// IsExplained reports whether an error of permissions, or of where JetStream is asked,
// names its remedy.
func IsExplained(err error) bool {
	var denial *Denial

	return errors.Is(err, ErrAPIPrefix) || errors.As(err, &denial) && denial.Cause != nil
}

// newDenial returns what a violation is about: the client has its text only.
func (s *Store) newDenial(violation error) *Denial {
	d := &Denial{Verb: "do it:", Subject: violation.Error(), violation: violation}
	m := regexp.MustCompile(`(?i)violation for (publish|subscription) to "([^"]+)"`).FindStringSubmatch(violation.Error())
	if m == nil {
		return d
	}
	d.Verb, d.Subject = "subscribe to", m[2]
	if strings.EqualFold(m[1], "publish") {
		d.Verb = "publish to"
	}
	d.Cause = s.cause(d)

	return d
}

// cause returns what is wrong, nil where it is only that a permission is missing.
func (s *Store) cause(d *Denial) error {
	if err := s.apis.mistaken(d.Subject); err != nil {
		return err
	}
	if d.Verb == "subscribe to" {
		return s.inboxCause(d.Subject)
	}

	return s.names.roleCause(d.Subject)
}

// inboxCause is that of a user without the inboxes on which it expects answers.
func (s *Store) inboxCause(subject string) error {
	inbox, _, _ := strings.Cut(s.nc.NewInbox(), ".")
	name, named := strings.CutPrefix(inbox, s.names.InboxPrefix(""))
	switch {
	case !strings.HasPrefix(subject, inbox+"."):
		return nil
	case inbox+"." == nats.InboxPrefix || !named:
		return Unusable{errors.New("answers arrive there: are these the credentials of a node, or of an operator who needs --inbox-prefix _INBOX_NAME?")}
	default:
		return Unusable{fmt.Errorf("answers arrive there: this user lacks the permissions of %s; include what `muster fleet permissions %s` prints in its entry of nats-server's configuration, or correct the name (`node` of agent.yaml, or what follows _INBOX_ in --inbox-prefix)", name, name)}
	}
}

// roleCause is that of an operator whose role does not have what only operators do.
func (n Names) roleCause(subject string) error {
	if strings.HasSuffix(subject, "STREAM.INFO."+ObjectStream(n.Bundles())) {
		return errors.New("only administrators store bundles: push a manifest without files beside it, or ask an administrator")
	}
	key, isAssignment := strings.CutPrefix(subject, KVSubject(n.Manifests(), ""))
	if !isAssignment {
		key = strings.TrimPrefix(subject, n.prefix+".command.")
	}
	family, _, ok := model.SplitKey(key)
	kind, name, _ := strings.Cut(family, ".")
	switch {
	case !ok || key == subject:
		return nil
	case family == model.GroupFamily(model.GroupAll):
		return errors.New("only administrators assign to all nodes, and queue requests for them")
	default:
		return fmt.Errorf("only administrators and operators of %s do (muster fleet permissions NAME --operator --%ss %s)", family, kind, name)
	}
}
