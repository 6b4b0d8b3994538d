package cli

import (
	"strings"

	"github.com/choria-io/fisk"
)

// NodeID returns the default node id of a host name: WEB01.Example.COM becomes WEB01_Example_COM. It returns
// an id unchanged.
func NodeID(name string) string { return strings.ReplaceAll(name, ".", "_") }

// nodeNames is a fisk.Value that maps host names to node ids.
type nodeNames struct {
	set          func(id string)
	isCumulative bool
	text         string
}

func (n *nodeNames) Set(name string) error {
	n.text = NodeID(name)
	n.set(n.text)

	return nil
}

func (n *nodeNames) String() string { return n.text }

// IsCumulative reports whether the flag or argument may be repeated.
func (n *nodeNames) IsCumulative() bool { return n.isCumulative }

// setter is a flag or an argument.
type setter interface{ SetValue(fisk.Value) }

// NodeVar makes a flag or an argument take the id or host name of one node.
func NodeVar(of setter, id *string) {
	of.SetValue(&nodeNames{set: func(given string) { *id = given }})
}

// NodesVar makes a flag or an argument take the ids or host names of nodes.
func NodesVar(of setter, ids *[]string) {
	of.SetValue(&nodeNames{set: func(given string) { *ids = append(*ids, given) }, isCumulative: true})
}
