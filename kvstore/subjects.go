package kvstore

// What a node can be asked, the token of the subject after the prefix.
const (
	VerbEnsure = "ensure"
	VerbStatus = "status"
	VerbFacts  = "facts"
	VerbPing   = "ping"
)

// Verbs returns every verb.
func Verbs() []string { return []string{VerbEnsure, VerbStatus, VerbFacts, VerbPing} }

// NodeState is the subject of the key of a node's state.
func (n Names) NodeState(node string) string { return KVSubject(n.Nodes(), node+".state") }

// NodeFacts is the subject of the key of a node's facts.
func (n Names) NodeFacts(node string) string { return KVSubject(n.Nodes(), node+".facts") }
