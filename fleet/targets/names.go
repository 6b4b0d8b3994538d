package targets

import (
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
)

// Node is a node as an expression sees it.
type Node struct {
	*model.Node
	// State is the state of the node as a whole.
	State string
	// Reason is why it is not in the state ok; it may be empty where the expression does not use
	// it, see UsesStatus.
	Reason string
	// Manifest returns what the node runs under the name of a manifest. It may be nil where
	// the expression does not use it, see UsesStatus.
	Manifest func(name string) Manifest
}

// Manifest is what a node runs of a manifest; the zero value is nothing.
type Manifest struct {
	Status   string `expr:"status"`
	Revision uint64 `expr:"revision"`
	Outcome  string `expr:"outcome"`
}

// Words are the words that some names can have. An expression that compares such a name
// with another word is not valid: it would be the same for every node.
type Words struct{ State, Status, Outcome []string }

// The functions inside the program. All but abs are for nobody to write.
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

// functions are the functions of the language that expressions may use; what is not here
// has no use in a target, or could build large values.
func functions() []string {
	return []string{"all", "any", "none", "count", "len", "lower", "upper", "trim", nameAbs}
}

// env is what a program reads. Facts is not read: facts are asked for by __facts, so
// that they are needed only where the evaluation gets there.
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

// set makes the node the one that the program reads.
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
