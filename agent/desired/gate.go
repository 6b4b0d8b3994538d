package desired

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/host"
)

// GateOptions configure a Gate.
type GateOptions struct {
	Host   *host.Host
	Path   string
	Policy func() signed.Policy
	// Times returns the times of the node's clock and of the server's clock. Expiry is checked by both.
	Times func() (own, server time.Time)
}

// Gate verifies values and requests. It is safe for concurrent use. Create it with OpenGate.
type Gate struct {
	o GateOptions

	mu   sync.Mutex
	seen trustRecord
}

type trustRecord struct {
	// Latest is the newest signing time. The clock does not go back before it.
	Latest time.Time `json:"latest"`
	// Targets are the last accepted envelopes by key, including removed keys.
	Targets map[string]signed.Mark `json:"targets"`
}

// OpenGate reads the accepted signatures. If signatures are required, a damaged record is an error, because
// replaced values could return.
func OpenGate(o GateOptions) (*Gate, error) {
	seen, err := host.ReadRecord[trustRecord](o.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil && o.Policy().On():
		return nil, fmt.Errorf("the record of accepted signatures is unreadable: %w (remove the file to start without it: an older version of an assignment could then return until its next push)", err)
	case err != nil:
		seen = trustRecord{}
	}
	if seen.Targets == nil {
		seen.Targets = map[string]signed.Mark{}
	}

	return &Gate{o: o, seen: seen}, nil
}

// NoGate returns a gate that requires no signatures.
func NoGate() *Gate {
	return &Gate{o: GateOptions{Policy: func() signed.Policy { return signed.Policy{} }}}
}

// Demands reports whether signatures are required.
func (g *Gate) Demands() bool { return g.o.Policy().On() }

// fresh returns an error unless an envelope is fresh by each clock, compared with the last accepted one. Each
// clock is at least at the newest accepted signing time.
func (g *Gate) fresh(e *signed.Envelope, last signed.Mark) error {
	own, server := g.o.Times()
	least := g.seen.Latest.Add(-signed.MaxSkew)
	if err := e.Fresh(model.LaterTime(own, least), last); err != nil {
		return err
	}
	if err := e.Fresh(model.LaterTime(server, least), last); err != nil {
		return fmt.Errorf("by the clock of the NATS server: %w", err)
	}

	return nil
}

// Assignment verifies the value of a key. An accepted value is verified by its signatures only. Permanent
// errors are model.Problems.
func (g *Gate) Assignment(ctx context.Context, e model.Entry, before bool) error {
	mark := e.Key
	if before {
		mark = ""
	}

	return problem(e.Key, assignmentHint, g.verify(ctx, e.Value, signed.Assign, e.Key, mark))
}

// Never returns the permanent reason why the value of a key is rejected: its signatures or their target. It
// is nil if the result depends on the time. The error is model.Problems.
func (g *Gate) Never(ctx context.Context, e model.Entry) error {
	err := problem(e.Key, assignmentHint, g.verify(ctx, e.Value, signed.Assign, e.Key, ""))
	if _, never := model.FindProblems(err); !never {
		return nil
	}

	return err
}

// Removal verifies the removal of an assignment. Permanent errors are model.Problems.
func (g *Gate) Removal(ctx context.Context, e model.Entry) error {
	err := g.verify(ctx, e.Value, signed.Remove, e.Key, e.Key)
	if err != nil {
		err = fmt.Errorf("the removal is not accepted: %w", err)
	}

	return problem(e.Key, assignmentHint, err)
}

// Pause verifies the pause of a family, or its removal. Permanent errors are model.Problems.
func (g *Gate) Pause(ctx context.Context, e model.Entry, family string) error {
	action := signed.Pause
	if e.Deleted {
		action = signed.Resume
	}
	err := g.verify(ctx, e.Value, action, family, string(signed.Pause)+" "+family)
	if err != nil && e.Deleted {
		err = fmt.Errorf("the end of the pause is not accepted: %w", err)
	}

	return problem(e.Key, pauseHint, err)
}

// Groups verifies the operators' groups of a node. A deleted key is never accepted: an empty list removes the
// groups. Permanent errors are model.Problems.
func (g *Gate) Groups(ctx context.Context, e model.Entry, family string) error {
	return problem(e.Key, groupsHint, g.verify(ctx, e.Value, signed.Groups, family, string(signed.Groups)+" "+family))
}

// verify verifies the signatures of a value for an action on a target. It then accepts the envelope under a
// mark, unless the mark is empty. The mark of an assignment is its key, so other marks contain a space.
func (g *Gate) verify(ctx context.Context, value []byte, action signed.Action, target, mark string) error {
	policy := g.o.Policy()
	if !policy.On() {
		return nil
	}
	envelope, err := open(policy, value)
	if err == nil {
		err = policy.Check(ctx, envelope, action, target)
	}
	if err == nil && mark != "" {
		err = g.accept(ctx, mark, envelope)
	}

	return err
}

// accept accepts a newer envelope after it is stored on disk.
func (g *Gate) accept(ctx context.Context, key string, e *signed.Envelope) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	last := g.seen.Targets[key]
	if err := g.fresh(e, last); err != nil {
		return err
	}
	mark := signed.Mark{Issued: e.Statement.Issued, Sum: e.Sum}
	if mark == last {
		return nil
	}
	next := trustRecord{Latest: g.seen.Latest, Targets: maps.Clone(g.seen.Targets)}
	next.Targets[key] = mark
	if mark.Issued.After(next.Latest) {
		next.Latest = mark.Issued
	}
	if err := g.o.Host.WriteRecord(ctx, g.o.Path, next); err != nil {
		return fmt.Errorf("cannot record the accepted signature, so an older version could return: %w", err)
	}
	g.seen = next

	return nil
}

// Opened is the opened request of a message.
type Opened struct {
	Request []byte
	// Signed means that it came in an envelope. Stale is the reason why it must not be executed unless it was
	// already accepted.
	Signed bool
	Stale  error
}

// Request opens a message with a request to the node of some families for an action: signed.Ensure,
// signed.Run, signed.Preview or signed.Cancel. It returns an error if a required signature is missing or
// invalid.
func (g *Gate) Request(ctx context.Context, data []byte, action signed.Action, families []string) (Opened, error) {
	policy := g.o.Policy()
	if !signed.IsEnvelope(data) && !policy.On() {
		return Opened{Request: data}, nil
	}
	e, err := open(policy, data)
	if err != nil {
		return Opened{Request: data}, problem("request", requestHint(action), err)
	}
	out := Opened{Request: []byte(e.Statement.Content), Signed: true}
	if !policy.On() {
		return out, nil
	}
	g.mu.Lock()
	out.Stale = problem("request", requestHint(action), g.fresh(e, signed.Mark{}))
	g.mu.Unlock()
	if err = policy.Check(ctx, e, action, families...); err == nil && e.Statement.Expires.Sub(e.Statement.Issued) > signed.MaxRequest {
		err = fmt.Errorf("%w: a request is valid for at most %s", signed.ErrExpired, signed.MaxRequest)
	}

	return out, problem("request", requestHint(action), err)
}

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

func assignmentHint(reason error) string {
	switch reason {
	case signed.ErrUnsigned:
		return "push or remove it with --sign-key FILE, or sign it with muster fleet sign"
	case signed.ErrSignatures:
		return "sign it with muster fleet sign, or add the key to `trust.keys` of this node"
	case signed.ErrOlder:
		return "an old version returned; assign the right one with muster fleet rollback and --sign-key FILE"
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

func pauseHint(error) string {
	return "muster fleet pause or resume with --sign-key FILE, once for each key"
}

func groupsHint(error) string {
	return "muster fleet group with --sign-key FILE, once for each key"
}

// judge verifies a version with the gate before any other code reads it. An active version stays active if it
// would not be accepted now, and is reported.
func (t *turn) judge(ctx context.Context, u *unit, e model.Entry) error {
	if e.Refused != "" {
		return nil // reading it fails for the same reason
	}
	good := u.record.Good
	before := good != nil && sameEntry(*good, e)
	err := t.o.Gate.Assignment(ctx, e, before)
	if !before {
		return err
	}
	if err != nil {
		u.untrusted = t.handleInvalid(ctx, u, e, err)
	}

	return nil
}

// errStillThere is transient: the key was assigned again, or a replica lags.
var errStillThere = errors.New("the bucket still has it")

// mayRemove reports whether a key that the bucket no longer has is unassigned. If signatures are required,
// the removal must be signed; otherwise the active version stays, and the removal is reported.
func (t *turn) mayRemove(ctx context.Context, u *unit) bool {
	if !t.o.Gate.Demands() || u.record.Good == nil {
		return true
	}
	e, err := t.o.Source.Removal(ctx, u.key)
	switch {
	case errors.Is(err, model.ErrNotFound):
		e, err = model.Entry{Key: u.key}, nil
	case err == nil && !e.Deleted:
		err = errStillThere
	}
	if err == nil {
		err = t.o.Gate.Removal(ctx, e)
	}
	if err == nil {
		return true
	}
	u.newest = nil
	u.untrusted = t.handleInvalid(ctx, u, e, err)
	// A later signed removal may not be noticed otherwise.
	u.retry.plan(t.in.Interval)

	return false
}
