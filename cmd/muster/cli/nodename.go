package cli

import (
	"strings"

	"github.com/choria-io/fisk"
)

// NodeID returns the id of a node for a host name: WEB01.Example.COM is WEB01_Example_COM, as
// an agent names itself by default. Ids contain no dots, so they stay as they are.
func NodeID(name string) string { return strings.ReplaceAll(name, ".", "_") }

// nodeNames is the value of a flag or an argument that names nodes. It implements fisk.Value.
type nodeNames struct {
	set func(string)
	// isCumulative is set for values that may be repeated.
	isCumulative bool
	text         string
}

// Set implements fisk.Value.
func (n *nodeNames) Set(name string) error {
	n.text = NodeID(name)
	n.set(n.text)

	return nil
}

// String implements fisk.Value.
func (n *nodeNames) String() string { return n.text }

// IsCumulative reports whether the flag or argument may be repeated.
func (n *nodeNames) IsCumulative() bool { return n.isCumulative }

// setter is a flag or an argument.
type setter interface{ SetValue(fisk.Value) }

// NodeVar makes a flag or an argument take the id or the host name of one node.
func NodeVar(of setter, id *string) {
	of.SetValue(&nodeNames{set: func(name string) { *id = name }})
}

// NodesVar makes a flag or an argument take the ids or host names of nodes.
func NodesVar(of setter, ids *[]string) {
	of.SetValue(&nodeNames{set: func(name string) { *ids = append(*ids, name) }, isCumulative: true})
}
