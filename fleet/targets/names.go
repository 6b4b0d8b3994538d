package targets

import (
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
)

// Node is the view of a node for expressions.
type Node struct {
	*model.Node
	// State is the state of the node as a whole.
	State string
	// Reason is the reason why the state is not ok. It may be empty if the expression does not use it, see UsesReason.
	Reason string
	// Manifest returns the manifest that the node runs under a name. It may be nil if the expression does not use it, see
	// UsesStatus.
	Manifest func(name string) Manifest
}

// Manifest is a manifest that a node runs. The zero value is no manifest.
type Manifest struct {
	Status   string `expr:"status"`
	Revision uint64 `expr:"revision"`
	Outcome  string `expr:"outcome"`
}

// Words are the possible values of some names. Comparing such a name with another word is invalid, because the result
// would be the same for every node.
type Words struct{ State, Status, Outcome []string }

// The functions inside the program. Users can write only abs.
const (
	nameFacts   = "__facts"
	nameStep    = "__step"
	nameCharge  = "__charge"
	nameTruth   = "__truth"
	nameGet     = "__get"
	nameList    = "__list"
	nameText    = "__text"
	nameCompare = "__compare"
	nameCompute = "__compute"
	nameAbs     = "abs"
)

// nodeNames are the names of expressions over nodes, in the order of the documentation.
func nodeNames() []string {
	return []string{"node", "host", "version", "groups", "group", "labels", "facts", "state", "reason", "package", "manifest", "paused", "message", "heard", "started", "age", "outbox", "clock"}
}

// functions returns the functions of the language that expressions may use. The others are of no use in a target or could
// build large values.
func functions() []string {
	return []string{"all", "any", "none", "count", "len", "lower", "upper", "trim", nameAbs}
}

// env is the environment of a program. Programs read facts with __facts instead of Facts, so facts are needed only if the
// evaluation reaches them.
type env struct {
	Node     string                `expr:"node"`
	Host     string                `expr:"host"`
	Version  string                `expr:"version"`
	Groups   []string              `expr:"groups"`
	Labels   map[string]string     `expr:"labels"`
	Facts    map[string]any        `expr:"facts"`
	State    string                `expr:"state"`
	Reason   string                `expr:"reason"`
	Message  string                `expr:"message"`
	Paused   bool                  `expr:"paused"`
	Heard    time.Time             `expr:"heard"`
	Started  time.Time             `expr:"started"`
	Age      func(time.Time) any   `expr:"age"`
	Outbox   int                   `expr:"outbox"`
	Clock    float64               `expr:"clock"`
	Group    func(string) bool     `expr:"group"`
	Manifest func(string) Manifest `expr:"manifest"`
	Package  func(string) any      `expr:"package"`
	GetFacts func() map[string]any `expr:"__facts"`
	Step     func(any) bool        `expr:"__step"`
	Charge   func(any, bool) any   `expr:"__charge"`
}

// set sets the node that the program reads.
func (e *env) set(n Node) {
	e.Node, e.Host, e.Version = n.Node.Node, n.Host, n.Version
	e.Groups, e.Labels = n.Groups, n.Labels
	e.Reason, e.Message, e.Paused = n.Reason, n.Message, n.Node.Paused != nil
	e.Heard, e.Started = n.Heard, n.Started
	e.State, e.Outbox, e.Clock = n.State, n.Outbox, n.Clock.Offset.Std().Seconds()
	e.Manifest = n.Manifest
}

// isMember reports whether the node is in a group; every node is in all.
func (e *env) isMember(group string) bool {
	return group == model.GroupAll || slices.Contains(e.Groups, group)
}
