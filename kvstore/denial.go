package kvstore

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// Unusable is why nothing of the fleet is read or written on a connection: a format that
// is not known, a wrong prefix of the API, a server that is too old, or that no answer
// may arrive.
type Unusable struct{ Err error }

// Error returns the reason.
func (u Unusable) Error() string { return u.Err.Error() }

// Unwrap returns the reason.
func (u Unusable) Unwrap() error { return u.Err }

// Unrouted is that no stream takes a subject from the account of a user, although the
// fleet has one for it.
type Unrouted struct {
	Subject string
	// Err is the error of the client.
	Err error
}

// Error names the subject, and what to look at.
func (u Unrouted) Error() string {
	return fmt.Sprintf("no stream takes %s from this account: is the user in the right account (NODES for nodes, OPERATORS for operators, REQUESTERS for those who send requests), with the imports that `muster fleet accounts` prints?", u.Subject)
}

// Unwrap returns the error of the client.
func (u Unrouted) Unwrap() error { return u.Err }

// Denial is an ErrNotPermitted, and the error of the client that it was made from.
type Denial struct {
	Subject string
	// Cause is what is wrong, with its remedy; nil where only a permission is missing.
	Cause     error
	verb      string
	violation error
}

// subscribe is the verb of a denied subscription.
const verbSubscribe = "subscribe to"

// IsOfSubscription reports whether a subscription is denied.
func (d *Denial) IsOfSubscription() bool { return d.verb == verbSubscribe }

// Error names the operation, and the cause if it is known.
func (d *Denial) Error() string {
	text := fmt.Sprintf("%v to %s %s", model.ErrNotPermitted, d.verb, d.Subject)
	if d.Cause != nil {
		text += ": " + d.Cause.Error()
	}

	return text
}

// Unwrap returns ErrNotPermitted, the error of the client and the cause.
func (d *Denial) Unwrap() []error {
	all := []error{model.ErrNotPermitted, d.violation}
	if d.Cause != nil {
		all = append(all, d.Cause)
	}

	return all
}

// IsExplained reports whether an error names its remedy.
func IsExplained(err error) bool {
	var denial *Denial

	return errors.As(err, &Unusable{}) || errors.As(err, &denial) && denial.Cause != nil
}

// Connection is what is known of a connection whose denials are explained.
type DenialContext struct {
	// Inbox is the subject below which answers arrive.
	Inbox string
	// Manifests, Commands and Control are the subjects below which only operators write,
	// Bundles is the stream that only administrators write to.
	Manifests, Commands, Control, Bundles string
	// States is the subject below which a node stores its state, and an operator nothing.
	States string
	// Whole are the streams of which a node reads its own subjects only.
	Whole []string
	// Node returns the command that prints the permissions of this node, empty where no
	// agent asks.
	Node func() string
	// Mistaken returns what is wrong with a subject itself, if anything.
	Mistaken func(subject string) error
}

// namedInbox begins the inbox of whoever has the permissions of a name.
const namedInbox = "_INBOX_"

// operation is what the text of a violation names: the client has no more.
var violationPattern = regexp.MustCompile(`(?i)violation for (publish|subscription) to "([^"]+)"`)

// Of returns the denial that a violation is.
func (c DenialContext) Of(violation error) *Denial {
	d := &Denial{verb: "do it:", Subject: violation.Error(), violation: violation}
	m := violationPattern.FindStringSubmatch(violation.Error())
	if m == nil {
		return d
	}
	d.verb, d.Subject = "publish to", m[2]
	if strings.EqualFold(m[1], "subscription") {
		d.verb = verbSubscribe
	}
	d.Cause = c.cause(d)

	return d
}

// IsOfAnswers reports whether no answer arrives because of a denial.
func (c DenialContext) IsOfAnswers(d *Denial) bool {
	return d.IsOfSubscription() && strings.HasPrefix(d.Subject, c.Inbox+".")
}

// cause returns what is wrong, nil where only a permission is missing.
func (c DenialContext) cause(d *Denial) error {
	err := c.Mistaken(d.Subject)
	switch {
	case err != nil:
		return err
	case c.IsOfAnswers(d):
		return Unusable{c.inboxCause()}
	case d.IsOfSubscription():
		return nil
	default:
		return c.roleCause(d.Subject)
	}
}

// inboxCause returns why a user may not subscribe to the inbox on which it expects answers.
func (c DenialContext) inboxCause() error {
	name, named := strings.CutPrefix(c.Inbox, namedInbox)
	if c.Inbox+"." == nats.InboxPrefix || !named {
		return errors.New("this inbox receives the answers; replace a node's credentials by an operator's, or set --inbox-prefix _INBOX_NAME for an operator with a private inbox")
	}

	output, correct := "`muster fleet permissions "+name+" --viewer` (or `--operator --groups …`)", "the part after _INBOX_ in --inbox-prefix"
	if command := c.Node(); command != "" {
		output, correct = "`"+command+"`", "`node` in agent.yaml"
	}

	return fmt.Errorf("this inbox receives the answers, and this user lacks the permissions of %s; include the output of %s in the user's entry in nats.conf, or correct the name (%s)", name, output, correct)
}

// NodeCommand returns the command that prints the permissions of a node.
func PermissionsCommand(node string, groups []string) string {
	command := "muster fleet permissions " + node
	if len(groups) > 0 {
		command += " --groups " + strings.Join(groups, ",")
	}

	return command
}

// WithRemedy adds what to do to a missing permission of a node, unless the error names it.
func DenialWithRemedy(err error, node string, groups []string) error {
	if !errors.Is(err, model.ErrNotPermitted) || IsExplained(err) {
		return err
	}

	return fmt.Errorf("%w (%s)", err, denialRemedy(node, groups))
}

// OfFamily is WithRemedy of what a node reads of a family: the family and what to do come first, as a long text
// is cut where it is shown.
func DenialOfFamily(err error, family, node string, groups []string) error {
	if !errors.Is(err, model.ErrNotPermitted) || IsExplained(err) {
		return err
	}

	return fmt.Errorf("%s is not permitted: %s (%w)", family, denialRemedy(node, groups), err)
}

func denialRemedy(node string, groups []string) string {
	return "give the node what `" + PermissionsCommand(node, groups) + "` prints"
}

// roleCause returns who may publish to a subject, if that is the work of certain roles.
func (c DenialContext) roleCause(subject string) error {
	if strings.HasSuffix(subject, "STREAM.INFO."+c.Bundles) {
		return errors.New("only administrators store bundles: push a manifest without files beside it, or ask an administrator")
	}
	if command := c.Node(); command != "" && strings.HasPrefix(subject, c.States) {
		return fmt.Errorf("these are not the permissions of a node, but perhaps those of an operator: an agent needs a user of NODES with what `%s` prints", command)
	}
	if c.States != "" && strings.HasPrefix(subject, c.States) {
		return errors.New("only the node stores that, and only administrators remove it")
	}
	if slices.ContainsFunc(c.Whole, func(stream string) bool { return strings.HasSuffix(subject, ".DIRECT.GET."+stream) }) {
		return errors.New("these are the permissions of a node, which reads only what is its own: give the user those of an operator (muster fleet permissions NAME --viewer, or --operator --groups …)")
	}
	key := subject
	for _, prefix := range []string{c.Manifests, c.Commands, c.Control} {
		key = strings.TrimPrefix(key, prefix)
	}
	family, last, ok := model.SplitKey(key)
	kind, name, _ := strings.Cut(family, ".")
	switch {
	case !ok || key == subject:
		return nil
	case last == model.ControlGroups && strings.HasPrefix(subject, c.Control):
		return errors.New("only administrators put nodes into groups")
	case family == model.GroupFamily(model.GroupAll):
		return errors.New("only administrators assign to all nodes, and queue requests for them")
	default:
		return fmt.Errorf("only administrators and operators of %s do (muster fleet permissions NAME --operator --%ss %s)", family, kind, name)
	}
}
