package ask

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// Kind is the kind of an action.
type Kind string

// The kinds.
const (
	Pause  Kind = "pause"
	Resume Kind = "resume"
	Run    Kind = "run"
	// Preview shows what an assignment would change, without assigning it.
	Preview Kind = "preview"
)

// Live reports whether the action sends a request that nodes answer at once.
func (k Kind) Live() bool { return k == Run || k == Preview }

// Target selects the nodes of an action. One of the fields is set.
type Target struct {
	// Nodes are names of nodes, Group is a group, and On is a target expression.
	Nodes []string `json:"nodes,omitempty"`
	Group string   `json:"group,omitempty"`
	On    string   `json:"on,omitempty"`
}

// EveryNode is the target expression for all nodes.
const EveryNode = "true"

// String describes the target, such as web01, group web, or nodes with state == "failed".
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

// families returns the named nodes or the group.
func (t Target) families() []fleet.Target {
	if t.Group != "" {
		return []fleet.Target{{Group: t.Group}}
	}

	return fleet.Targets(t.Nodes, nil, false)
}

const (
	// maxNames is the maximum number of named nodes.
	maxNames = 100
	// defaultWithin, minWithin and maxWithin limit the time of a request.
	defaultWithin = 2 * time.Minute
	minWithin     = time.Second
	maxWithin     = 10 * time.Minute
	// maxBy is the maximum length of a user name in bytes, because ids of requests contain it.
	maxBy = 96
)

// check returns an error unless exactly one field is set and valid.
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
		return refuse("%d nodes are named, at most %d are allowed: use a target expression", len(t.Nodes), maxNames)
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

// Expect describes the nodes that the user confirmed.
type Expect struct {
	// Nodes is their number, 0 for any. Digest is the digest of Match, empty for any.
	Nodes  int
	Digest string
}

// Spec is an action that a user requests.
type Spec struct {
	Kind   Kind   `json:"kind"`
	Target Target `json:"target"`
	// By is the name of the user.
	By string `json:"by"`
	// Share identifies the user for the limit of actions, by a value that users cannot choose. It defaults to By.
	Share string `json:"-"`
	// Until is the end of a pause, zero for no end, and Reason its reason.
	Until  time.Time `json:"until,omitzero"`
	Reason string    `json:"reason,omitempty"`
	// Manifests are the names of the manifests to run, none for all. Noop changes nothing.
	Manifests []string `json:"manifests,omitempty"`
	Noop      bool     `json:"noop,omitempty"`
	// Previewed is the assignment of a preview, nil for other kinds.
	Previewed *Previewed `json:"previewed,omitempty"`
	// Within is the time limit of a request; 0 is 2 minutes.
	Within time.Duration `json:"-"`
	// Expect are the nodes that the user confirmed. All confirms an action on all nodes.
	Expect Expect `json:"-"`
	All    bool   `json:"-"`
}

// check returns an error for an invalid action and sets the defaults.
func (s *Spec) check(now time.Time) error {
	if err := s.Target.check(); err != nil {
		return err
	}
	s.By = named(s.By)
	if s.By == "" {
		return refuse("no user is signed in")
	}
	s.Share = cmp.Or(s.Share, s.By)
	if s.Within == 0 {
		s.Within = defaultWithin
	}
	s.trim()
	switch s.Kind {
	case Pause:
		if !s.Until.IsZero() && !s.Until.After(now) {
			return refuse("the pause would end in the past: give a later time")
		}
		if err := s.pause(now).Check(); err != nil {
			return refuse("%v", err)
		}
	case Resume:
	case Preview:
		if s.Within < minWithin || s.Within > maxWithin {
			return refuse("the time limit must be between %s and %s", minWithin, maxWithin)
		}
		return s.Previewed.check()
	case Run:
		if s.Within < minWithin || s.Within > maxWithin {
			return refuse("the time limit must be between %s and %s", minWithin, maxWithin)
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

// trim clears the fields that the kind does not have.
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

// named returns a user name as one line of limited length.
func named(by string) string {
	text := strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(by, ""))

	return strings.TrimSpace(strings.ToValidUTF8(text[:min(len(text), maxBy)], ""))
}

// pause returns the document of the pause.
func (s *Spec) pause(now time.Time) model.Pause {
	return model.Pause{Protocol: model.ProtocolPause, Until: s.Until, By: s.Author(), Reason: s.Reason, At: now.UTC().Truncate(time.Second)}
}

// Author returns the author of written documents: the user and the dashboard.
func (s *Spec) Author() string { return s.By + " (dashboard)" }

// targets returns the targets of the change: the group, or each node.
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
