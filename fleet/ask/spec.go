package ask

import (
	"cmp"
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

// Target is whom an action is for. One of the three is set.
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

// families returns the targets that are named.
func (t Target) families() []fleet.Target {
	if t.Group != "" {
		return []fleet.Target{{Group: t.Group}}
	}

	return fleet.Targets(t.Nodes, nil, false)
}

const (
	// maxNames is how many nodes are named; more are selected by an expression.
	maxNames = 100
	// defaultWithin, minWithin and maxWithin are how long nodes have for what they are asked.
	defaultWithin = 2 * time.Minute
	minWithin     = time.Second
	maxWithin     = 10 * time.Minute
	// maxBy is how many bytes of the name of whoever acts are written: ids of requests have it.
	maxBy = 96
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

// Expect are the nodes that must match, else nothing is done.
type Expect struct {
	// Nodes is how many, 0 for any number, Digest that of Match, empty for any.
	Nodes  int
	Digest string
}

// Spec is what somebody wants to be done.
type Spec struct {
	Kind   Kind   `json:"kind"`
	Target Target `json:"target"`
	// By is who wants it, as they signed in.
	By string `json:"by"`
	// Share is of whose places it takes one, by what they cannot choose; By where it is empty.
	Share string `json:"-"`
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
	// Expect are the nodes that whoever acts was shown; All is that they mean all of a fleet that is not small.
	Expect Expect `json:"-"`
	All    bool   `json:"-"`
}

// check reports whether it can be done, and sets what is missing.
func (s *Spec) check(now time.Time) error {
	if err := s.Target.check(); err != nil {
		return err
	}
	s.By = named(s.By)
	if s.By == "" {
		return refuse("nobody signed in")
	}
	s.Share = cmp.Or(s.Share, s.By)
	if s.Within == 0 {
		s.Within = defaultWithin
	}
	s.trim()
	switch s.Kind {
	case Pause:
		if !s.Until.IsZero() && !s.Until.After(now) {
			return refuse("the pause would be over already: give a later time")
		}
		if err := s.pause(now).Check(); err != nil {
			return refuse("%v", err)
		}
	case Resume:
	case Preview:
		if s.Within < minWithin || s.Within > maxWithin {
			return refuse("nodes have between %s and %s", minWithin, maxWithin)
		}
		return s.Previewed.check()
	case Run:
		if s.Within < minWithin || s.Within > maxWithin {
			return refuse("nodes have between %s and %s", minWithin, maxWithin)
		}
		request := model.RunRequest{Protocol: model.ProtocolRunRequest, ID: "x", Manifests: s.Manifests, Expires: now}
		if err := request.Check(); err != nil {
			return refuse("%v", err)
		}
	default:
		return refuse("unknown action %q", string(s.Kind))
	}

	return nil
}

// trim leaves out what an action of its kind does not have, and nothing has checked.
func (s *Spec) trim() {
	if s.Kind != Pause {
		s.Until, s.Reason = time.Time{}, ""
	}
	if s.Kind != Run {
		s.Manifests, s.Noop = nil, false
	}
	if s.Kind != Preview {
		s.Previewed = nil
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
func (s *Spec) pause(now time.Time) model.Pause {
	return model.Pause{Protocol: model.ProtocolPause, Until: s.Until, By: s.Author(), Reason: s.Reason, At: now.UTC().Truncate(time.Second)}
}

// Author names who acts, and where, in what is written for it.
func (s *Spec) Author() string { return s.By + " (dashboard)" }

// targets returns the targets that are written to: the group, or each node.
func (s *Spec) targets(nodes []model.Node) []fleet.Target {
	if s.Target.Group != "" {
		return []fleet.Target{{Group: s.Target.Group}}
	}
	out := make([]fleet.Target, len(nodes))
	for i, n := range nodes {
		out[i] = fleet.Target{Node: n.Node}
	}

	return out
}
