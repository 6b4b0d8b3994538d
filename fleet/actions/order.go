package actions

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// Kind is what is done.
type Kind string

// The kinds.
const (
	Pause  Kind = "pause"
	Resume Kind = "resume"
	Run    Kind = "run"
	// Preview asks what an assignment would change, which is not assigned by that.
	Preview Kind = "preview"
)

// Live reports whether nodes are asked, and answer at once.
func (k Kind) Live() bool { return k == Run || k == Preview }

// Target is whom an order is for. One of the three is set.
type Target struct {
	// Nodes are names, Group is one of nodes, On a target expression.
	Nodes []string `json:"nodes,omitempty"`
	Group string   `json:"group,omitempty"`
	On    string   `json:"on,omitempty"`
}

// EveryNode is the target expression of all nodes.
const EveryNode = "true"

// String describes it for people: web01, group web, nodes with state == "failed".
func (t Target) String() string {
	switch {
	case t.Group != "":
		return "group " + t.Group
	case t.On == EveryNode:
		return "all nodes"
	case t.On != "":
		return "nodes with " + t.On
	default:
		return strings.Join(t.Nodes, ", ")
	}
}

const (
	// maxNames is how many nodes are named; more are selected by an expression.
	maxNames = 100
	// defaultWithin, minWithin and maxWithin are how long nodes have for what they are asked.
	defaultWithin = 2 * time.Minute
	minWithin     = time.Second
	maxWithin     = 10 * time.Minute
	// maxBy is how many bytes of the name of whoever acts are written.
	maxBy = 64
)

// check reports whether exactly one of the three is set, and valid.
func (t Target) check() error {
	given := 0
	for _, is := range []bool{len(t.Nodes) > 0, t.Group != "", t.On != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return refuse("name one target: nodes, a group, or a target expression")
	}
	if len(t.Nodes) > maxNames {
		return refuse("%d nodes are named, at most %d are taken: select them by a target expression", len(t.Nodes), maxNames)
	}
	for _, n := range t.Nodes {
		if err := model.CheckNode(n, nil); err != nil {
			return refuse("%v", err)
		}
	}
	if t.Group != "" {
		if err := model.CheckFamily(model.GroupFamily(t.Group)); err != nil {
			return refuse("%v", err)
		}
	}

	return nil
}

// Order is what somebody wants to be done.
type Order struct {
	Kind   Kind   `json:"kind"`
	Target Target `json:"target"`
	// By is who wants it, as they signed in.
	By string `json:"by"`
	// Until is when a pause ends by itself, zero for never, and Reason why it is.
	Until  time.Time `json:"until,omitzero"`
	Reason string    `json:"reason,omitempty"`
	// Manifests are names of what is run, none for all that is assigned; with Noop nothing is changed.
	Manifests []string `json:"manifests,omitempty"`
	Noop      bool     `json:"noop,omitempty"`
	// Previewed is what is previewed, nil for other kinds.
	Previewed *Previewed `json:"previewed,omitempty"`
	// Within is how long nodes have for it, 2 minutes for 0.
	Within time.Duration `json:"-"`
	// Expect is how many nodes whoever orders it was shown, negative where they were not; All is that
	// they mean all of a fleet that is not small.
	Expect int  `json:"-"`
	All    bool `json:"-"`
}

// Previewed is what would be assigned.
type Previewed struct {
	// Key and Revision are those of the assignment that it is from; without a key somebody wrote it.
	Key      string `json:"key,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	// Name is that of the manifest, Value what would be assigned under it.
	Name  string `json:"name"`
	Value string `json:"-"`
}

// check reports whether it can be previewed.
func (p *Previewed) check() error {
	switch {
	case p == nil || p.Value == "":
		return refuse("there is nothing to preview: choose an assignment, or write a manifest")
	case len(p.Value) > MaxPreviewed:
		return refuse("what is previewed has %d bytes, at most %d are sent: use muster fleet preview --bundle", len(p.Value), MaxPreviewed)
	}
	if err := model.CheckName(p.Name); err != nil {
		return refuse("%v", err)
	}

	return nil
}

// MaxPreviewed is how many bytes may be previewed: nodes get it in one message. All of them together get
// maxSent at most, which is in memory where the messages are signed.
const (
	MaxPreviewed = 256 << 10
	maxSent      = 128 << 20
)

// Refusal is an order that is not carried out; it never will be by trying again.
type Refusal struct{ Why string }

// Error returns why, and what to do.
func (r *Refusal) Error() string { return r.Why }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// The errors of orders beside Refusal and those of target expressions.
var (
	// ErrOff is that nobody may act.
	ErrOff = errors.New("actions are off: start muster fleet serve with --actions, and with --tokens or OpenID Connect")
	// ErrBusy is that too much goes on already.
	ErrBusy = errors.New("too many actions go on: try again when one of them has ended")
	// ErrNobody is a target in which no node is.
	ErrNobody = errors.New("no known node matches")
	// ErrAll is a target of all of a fleet that is not small, where that was not confirmed.
	ErrAll = errors.New("this is for all nodes: confirm it")
	// ErrOthers is a target that has other nodes than whoever orders it was shown.
	ErrOthers = errors.New("other nodes match now than when they were shown")
)

// check reports whether an order can be carried out, and sets what is missing.
func (o *Order) check(now time.Time) error {
	if err := o.Target.check(); err != nil {
		return err
	}
	o.By = named(o.By)
	if o.By == "" {
		return refuse("nobody signed in")
	}
	if o.Within == 0 {
		o.Within = defaultWithin
	}
	o.trim()
	switch o.Kind {
	case Pause:
		if !o.Until.IsZero() && !o.Until.After(now) {
			return refuse("the pause would be over already: give a later time")
		}
		if err := o.pause(now).Check(); err != nil {
			return refuse("%v", err)
		}
	case Resume:
	case Preview:
		if o.Within < minWithin || o.Within > maxWithin {
			return refuse("nodes have between %s and %s", minWithin, maxWithin)
		}
		return o.Previewed.check()
	case Run:
		if o.Within < minWithin || o.Within > maxWithin {
			return refuse("nodes have between %s and %s", minWithin, maxWithin)
		}
		request := model.RunRequest{Protocol: model.ProtocolRunRequest, ID: "x", Manifests: o.Manifests, Expires: now}
		if err := request.Check(); err != nil {
			return refuse("%v", err)
		}
	default:
		return refuse("unknown action %q", string(o.Kind))
	}

	return nil
}

// trim leaves out what an order of its kind does not have, and nothing has checked.
func (o *Order) trim() {
	if o.Kind != Pause {
		o.Until, o.Reason = time.Time{}, ""
	}
	if o.Kind != Run {
		o.Manifests, o.Noop = nil, false
	}
	if o.Kind != Preview {
		o.Previewed = nil
	}
}

// named returns the name of somebody as one line of a bounded length.
func named(by string) string {
	text := strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(by, ""))

	return strings.TrimSpace(strings.ToValidUTF8(text[:min(len(text), maxBy)], ""))
}

// pause returns the document of a pause.
func (o *Order) pause(now time.Time) model.Pause {
	return model.Pause{Protocol: model.ProtocolPause, Until: o.Until, By: o.Author(), Reason: o.Reason, At: now.UTC().Truncate(time.Second)}
}

// Author names who ordered it, and where, in what is written for it.
func (o *Order) Author() string { return o.By + " (dashboard)" }

// ParseUntil reads when a pause ends: a duration from now, such as 2h or 3d, or a time with its zone;
// empty is never. The error is a *Refusal.
func ParseUntil(text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return time.Time{}, nil
	}
	if days, is := strings.CutSuffix(text, "d"); is {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n < 100_000 {
			return now.UTC().AddDate(0, 0, n).Truncate(time.Second), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.UTC().Add(d).Truncate(time.Second), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC().Truncate(time.Second), nil
		}
	}

	return time.Time{}, refuse("%q is neither a duration such as 90m or 2d nor a time such as 2006-01-02T15:04:05Z", text)
}

// targets returns the targets that are written to: the group, or each node.
func (o *Order) targets(nodes []model.Node) []fleet.Target {
	if o.Target.Group != "" {
		return []fleet.Target{{Group: o.Target.Group}}
	}
	out := make([]fleet.Target, len(nodes))
	for i, n := range nodes {
		out[i] = fleet.Target{Node: n.Node}
	}

	return out
}
