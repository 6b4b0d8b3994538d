package kvstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

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
	Names Names
	// Node is the command that prints the permissions of the node, or "" if the user is no agent.
	Node string
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
	if command := c.Node; command != "" {
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
	n := c.Names
	states, control := KVSubject(n.Nodes, ""), KVSubject(n.Control, "")
	if strings.HasSuffix(subject, "STREAM.INFO."+ObjectStream(n.Bundles)) {
		return errors.New("only administrators store bundles: push a manifest without files beside it, or ask an administrator")
	}
	if strings.HasPrefix(subject, states) && c.Node != "" {
		return fmt.Errorf("this user has the permissions of an operator, or too few: an agent needs a user of NODES with the permissions that `%s` prints", c.Node)
	}
	if strings.HasPrefix(subject, states) {
		return errors.New("only the node stores that, and only administrators remove it")
	}
	if slices.ContainsFunc([]string{KVStream(n.Manifests), KVStream(n.Control), KVStream(n.Nodes), n.Reports}, func(stream string) bool { return strings.HasSuffix(subject, ".DIRECT.GET."+stream) }) {
		return errors.New("a node may read only its own keys: give the user the permissions of an operator (muster fleet permissions NAME --viewer, or --operator --groups …)")
	}
	key := subject
	for _, prefix := range []string{KVSubject(n.Manifests, ""), n.Prefix + ".command.", control} {
		key = strings.TrimPrefix(key, prefix)
	}
	family, last, ok := model.SplitKey(key)
	kind, name, _ := strings.Cut(family, ".")
	switch {
	case !ok || key == subject:
		return nil
	case last == model.ControlGroups && strings.HasPrefix(subject, control):
		return errors.New("only administrators put nodes into groups")
	case family == model.GroupFamily(model.GroupAll):
		return errors.New("only administrators assign to all nodes, and queue requests for them")
	default:
		return fmt.Errorf("only administrators and operators of %s do (muster fleet permissions NAME --operator --%ss %s)", family, kind, name)
	}
}

type severalDenials []error

// Error joins the texts.
func (s severalDenials) Error() string {
	var texts []string
	for _, err := range s {
		texts = append(texts, err.Error())
	}

	return strings.Join(texts, "; ")
}

// Unwrap returns all errors.
func (s severalDenials) Unwrap() []error { return s }

// SplitDenials returns the errors that JoinDenials or errors.Join joined, or err itself. It returns
// none for nil.
func SplitDenials(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}

	return []error{err}
}

// JoinDenials joins the errors of several families on one line and removes duplicates. An Unusable
// error replaces all others. It returns nil for no errors.
func JoinDenials(failed []error) error {
	if len(failed) == 0 {
		return nil
	}
	errs := slices.Clone(failed)
	for i, err := range errs {
		if cause := (Unusable{}); errors.As(err, &cause) {
			errs[i] = cause
		}
	}
	slices.SortStableFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	errs = slices.CompactFunc(errs, func(a, b error) bool { return a.Error() == b.Error() })
	if len(errs) == 1 {
		return errs[0]
	}

	return severalDenials(errs)
}

// Denials ends the calls that wait for an answer to a denied request. The server reports a denial only
// to the connection, and never answers the request.
type Denials struct {
	nc      *nats.Conn
	mu      sync.Mutex
	waiting map[*waiter]bool
	// subscriptions holds the denials of subscriptions by subject. inbox is the denial of all answers.
	subscriptions map[string]lasting
	inbox         lasting
	context       DenialContext
	// unsubscribed receives a token when a subscription is denied.
	unsubscribed chan struct{}
}

// lasting is a denial that the server reports once per connection. It is valid until the next
// reconnect. epoch is the number of reconnects.
type lasting struct {
	err   error
	epoch uint64
}

// on returns the denial, or nil if it is no longer valid.
func (l lasting) on(nc *nats.Conn) error {
	if l.epoch != nc.Stats().Reconnects {
		return nil
	}

	return l.err
}

const maxSubscriptions = 1024

// waiter is a waiting call and the subjects that it uses.
type waiter struct {
	concerns func(subject string) bool
	fail     context.CancelCauseFunc
}

// listen records the denials of a connection and passes them to the previous error handler, except for
// expected ones.
func (r *Denials) listen(nc *nats.Conn, c DenialContext, expected func(subject string) bool) {
	r.nc, r.context, r.waiting, r.subscriptions, r.unsubscribed = nc, c, map[*waiter]bool{}, map[string]lasting{}, make(chan struct{}, 1)
	before := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		isExpected := false
		if errors.Is(err, nats.ErrPermissionViolation) {
			d := r.deny(err)
			isExpected, err = expected(d.Subject), d
		}
		if before != nil && !isExpected {
			before(nc, sub, err)
		}
	})
}

// deny ends the calls that a violation affects. If it prevents answers, these are all calls.
func (r *Denials) deny(violation error) *Denial {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.context.Of(violation)
	ofAnswers := r.context.IsOfAnswers(d)
	now := lasting{d, r.nc.Stats().Reconnects}
	if ofAnswers && r.inbox.on(r.nc) == nil {
		r.inbox = now
	}
	if d.IsOfSubscription() {
		maps.DeleteFunc(r.subscriptions, func(_ string, l lasting) bool { return l.on(r.nc) == nil })
		if len(r.subscriptions) < maxSubscriptions {
			r.subscriptions[d.Subject] = now
		}
		select {
		case r.unsubscribed <- struct{}{}:
		default:
		}
	}
	for w := range r.waiting {
		if ofAnswers || w.concerns(d.Subject) {
			w.fail(d)
		}
	}

	return d
}

// OfNode sets the remedy for an agent: the command that prints its permissions.
func (r *Denials) OfNode(command string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.context.Node = command
}

// Permitted returns a context that ends when the server denies a subject that the call uses. The
// caller passes its error to the returned function, which ends the waiting and returns the denial
// instead, if there is one.
func (r *Denials) Permitted(ctx context.Context, concerns func(subject string) bool) (context.Context, func(error) error) {
	ctx, fail := context.WithCancelCause(ctx)
	w := &waiter{concerns, fail}
	r.mu.Lock()
	if err := r.inbox.on(r.nc); err != nil {
		fail(err)
	}
	r.waiting[w] = true
	r.mu.Unlock()

	return ctx, func(err error) error {
		r.mu.Lock()
		delete(r.waiting, w)
		r.mu.Unlock()
		if cause := context.Cause(ctx); err != nil && errors.Is(cause, model.ErrNotPermitted) {
			err = cause
		}
		fail(nil)

		return err
	}
}

// Subscription returns the denial of all answers, or else the first denial, sorted by text, of a
// wanted subject. It returns nil if nothing was denied on this connection. The server accepts a denied
// subscription only on a new connection, even if it has become permitted.
func (r *Denials) Subscription(wanted func(subject string) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.inbox.on(r.nc); err != nil {
		return err
	}
	var first error
	for subject, l := range r.subscriptions {
		if err := l.on(r.nc); err != nil && wanted(subject) && (first == nil || err.Error() < first.Error()) {
			first = err
		}
	}

	return first
}

// Forget removes the denials of subjects that are not wanted.
func (r *Denials) Forget(wanted func(subject string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.subscriptions, func(subject string, _ lasting) bool { return !wanted(subject) })
}

// Unsubscribed returns a channel that receives a token when a subscription is denied.
func (r *Denials) Unsubscribed() <-chan struct{} { return r.unsubscribed }

// To returns a function that reports whether a subject is one of the given subjects.
func To(subjects ...string) func(string) bool {
	return func(denied string) bool { return slices.Contains(subjects, denied) }
}
