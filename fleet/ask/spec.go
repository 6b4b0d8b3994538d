package ask

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
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

// Match is the nodes of a target.
type Match struct {
	targets.Selection
	// All is set if the nodes are a whole fleet that is not small.
	All bool
}

// Digest returns a digest of the node names. It differs for any other set of nodes.
func (m Match) Digest() string {
	names := make([]string, len(m.Nodes))
	for i, n := range m.Nodes {
		names[i] = n.Node
	}
	slices.Sort(names)

	return model.DigestOf([]byte(strings.Join(names, "\n")))
}

// matchOf returns the nodes of a target.
func matchOf(m Model, t Target) (Match, error) {
	if err := t.check(); err != nil {
		return Match{}, err
	}
	found, err := m.Select(t.On)
	if err != nil {
		return Match{}, err
	}
	switch {
	case t.Group != "":
		of := fleet.Target{Group: t.Group}
		found.Nodes = slices.DeleteFunc(found.Nodes, func(n model.Node) bool { return !of.Includes(n.NodeState) })
	case len(t.Nodes) > 0:
		if found.Nodes, err = pick(found.Nodes, t.Nodes); err != nil {
			return Match{}, err
		}
	}
	if len(found.Nodes) == 0 {
		return Match{found, false}, fmt.Errorf("%w: %s", ErrNobody, t)
	}

	return Match{found, len(found.Nodes) == found.Known && found.Known > targets.MaxUnconfirmed}, nil
}

// pick returns nodes by name. An unknown name is an error.
func pick(all []model.Node, names []string) ([]model.Node, error) {
	var out []model.Node
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		at := slices.IndexFunc(all, func(n model.Node) bool { return n.Node == name })
		if at < 0 {
			return nil, fmt.Errorf("%w: node %s is unknown", ErrNobody, name)
		}
		out = append(out, all[at])
	}

	return out, nil
}

// confirmed returns an error if the nodes are not those that the user confirmed.
func (s *Spec) confirmed(m Match) error {
	switch {
	case m.All && !s.All && s.Kind != Preview: // a preview changes nothing
		return fmt.Errorf("%w (%d)", ErrAll, len(m.Nodes))
	case s.Kind == Preview && len(m.Nodes)*len(s.Previewed.Value) > maxSent:
		return refuse("the preview has %d bytes, too many for %d nodes: select fewer nodes or use muster fleet preview --bundle", len(s.Previewed.Value), len(m.Nodes))
	case s.Expect.Nodes != 0 && s.Expect.Nodes != len(m.Nodes):
		return fmt.Errorf("%w: %d instead of %d", ErrOthers, len(m.Nodes), s.Expect.Nodes)
	case s.Expect.Digest != "" && s.Expect.Digest != m.Digest():
		return fmt.Errorf("%w: they are not the same %d nodes", ErrOthers, len(m.Nodes))
	default:
		return nil
	}
}

// ParseUntil parses the end of a pause: a duration from now, such as 2h or 3d, or a time with its zone. An empty text is
// no end. The error is a *Refusal.
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

// Previewed is the assignment to preview.
type Previewed struct {
	// Key and Revision identify the stored assignment, empty for a new manifest.
	Key      string `json:"key,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	// Name is the name of the manifest, and Value the assigned value.
	Name  string `json:"name"`
	Value string `json:"-"`
}

// check returns an error if the assignment cannot be previewed.
func (p *Previewed) check() error {
	switch {
	case p == nil || p.Value == "":
		return refuse("there is nothing to preview: choose an assignment, or write a manifest")
	case len(p.Value) > MaxPreviewed:
		return refuse("the previewed value has %d bytes, at most %d are sent: use muster fleet preview --bundle", len(p.Value), MaxPreviewed)
	}
	if err := model.CheckName(p.Name); err != nil {
		return refuse("%v", err)
	}
	key := cmp.Or(p.Key, model.Key(model.GroupFamily(model.GroupAll), p.Name))
	if problems := assign.ProblemsOf(key, []byte(p.Value)); len(problems) > 0 {
		return refuse("%s", assign.Invalid(problems))
	}

	return nil
}

// MaxPreviewed is the maximum length of a previewed value, because nodes receive it in one message. maxSent limits the
// messages to all nodes together, because signed messages are held in memory.
const (
	MaxPreviewed = 256 << 10
	maxSent      = 128 << 20
)

// RevisionOf returns a revision of an assignment to preview, the newest for 0. The error is a *Refusal.
func RevisionOf(key string, all []model.Entry, revision uint64) (*Previewed, error) {
	for _, e := range slices.Backward(all) {
		if revision != 0 && e.Revision != revision {
			continue
		}
		value, err := signed.Content(e.Value)
		_, name, _ := model.SplitKey(key)
		switch {
		case err != nil:
			return nil, refuse("%v", err)
		case e.Deleted || e.Refused != "":
			return nil, refuse("revision %d of %s is a removal or invalid", e.Revision, key)
		}

		return &Previewed{Key: key, Revision: e.Revision, Name: name, Value: string(value)}, nil
	}
	if revision == 0 {
		return nil, refuse("the bucket has no assignment %s", key)
	}

	return nil, refuse("the bucket does not have revision %d of %s any more", revision, key)
}
