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

// Unusable reports why muster can neither read nor write on a connection: an unknown format, a wrong
// API prefix, an old server, or a denied inbox.
type Unusable struct{ Err error }

// Error returns the text of the reason.
func (u Unusable) Error() string { return u.Err.Error() }

// Unwrap returns the reason.
func (u Unusable) Unwrap() error { return u.Err }

// Unrouted reports that the account of the user does not forward a subject to its stream.
type Unrouted struct {
	Subject string
	// Err is the error of the NATS client.
	Err error
}

// Error returns the subject and what to check.
func (u Unrouted) Error() string {
	return fmt.Sprintf("no stream takes %s from this account: is the user in the right account (NODES for nodes, OPERATORS for operators, REQUESTERS for those who send requests), with the imports that `muster fleet accounts` prints?", u.Subject)
}

// Unwrap returns the error of the NATS client.
func (u Unrouted) Unwrap() error { return u.Err }

// Denial is a model.ErrNotPermitted with the error of the NATS client.
type Denial struct {
	Subject string
	// Cause is the mistake and its remedy, or nil if only a permission is missing.
	Cause     error
	verb      string
	violation error
}

// verbSubscribe is the verb of a denied subscription.
const verbSubscribe = "subscribe to"

// IsOfSubscription reports whether a subscription is denied.
func (d *Denial) IsOfSubscription() bool { return d.verb == verbSubscribe }

// Error returns the operation, and the cause if it is known.
func (d *Denial) Error() string {
	text := fmt.Sprintf("%v to %s %s", model.ErrNotPermitted, d.verb, d.Subject)
	if d.Cause != nil {
		text += ": " + d.Cause.Error()
	}

	return text
}

// Unwrap returns model.ErrNotPermitted, the error of the NATS client, and the cause.
func (d *Denial) Unwrap() []error {
	all := []error{model.ErrNotPermitted, d.violation}
	if d.Cause != nil {
		all = append(all, d.Cause)
	}

	return all
}

// IsExplained reports whether the text of an error includes a remedy.
func IsExplained(err error) bool {
	var denial *Denial

	return errors.As(err, &Unusable{}) || errors.As(err, &denial) && denial.Cause != nil
}

// DenialContext describes a connection, to explain its denials.
type DenialContext struct {
	// Inbox is the subject prefix for answers.
	Inbox string
	// Only operators write below Manifests, Commands and Control. Only administrators write to the
	// stream Bundles.
	Manifests, Commands, Control, Bundles string
	// Only nodes write below States, each its own state.
	States string
	// Whole lists the streams in which a node may read only its subjects.
	Whole []string
	// Node returns the command that prints the permissions of the node, or "" if the user is no agent.
	Node func() string
	// Mistaken returns the error of a wrong subject, or nil.
	Mistaken func(subject string) error
}

// namedInbox is the inbox prefix of users with permissions for a name.
const namedInbox = "_INBOX_"

// violationPattern finds the operation in the text of a violation. The NATS client offers nothing
// else.
var violationPattern = regexp.MustCompile(`(?i)violation for (publish|subscription) to "([^"]+)"`)

// Of returns the Denial for a violation.
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

// IsOfAnswers reports whether a denial prevents all answers.
func (c DenialContext) IsOfAnswers(d *Denial) bool {
	return d.IsOfSubscription() && strings.HasPrefix(d.Subject, c.Inbox+".")
}

// cause returns the mistake behind a denial, or nil if only a permission is missing.
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

// inboxCause returns why a user may not subscribe to the inbox for its answers.
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

// PermissionsCommand returns the command that prints the permissions of a node.
func PermissionsCommand(node string, groups []string) string {
	command := "muster fleet permissions " + node
	if len(groups) > 0 {
		command += " --groups " + strings.Join(groups, ",")
	}

	return command
}

// DenialWithRemedy adds the remedy to a missing permission of a node, unless the error has one.
func DenialWithRemedy(err error, node string, groups []string) error {
	if !errors.Is(err, model.ErrNotPermitted) || IsExplained(err) {
		return err
	}

	return fmt.Errorf("%w (%s)", err, denialRemedy(node, groups))
}

// DenialOfFamily adds the family and the remedy to a missing permission to read a family. They come
// first, because long texts are cut.
func DenialOfFamily(err error, family, node string, groups []string) error {
	if !errors.Is(err, model.ErrNotPermitted) || IsExplained(err) {
		return err
	}

	return fmt.Errorf("%s is not permitted: %s (%w)", family, denialRemedy(node, groups), err)
}

func denialRemedy(node string, groups []string) string {
	return "give the node what `" + PermissionsCommand(node, groups) + "` prints"
}

// roleCause returns which roles may publish to a subject, if only certain roles may.
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
