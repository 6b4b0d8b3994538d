package status

import (
	"fmt"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/model"
)

// unstored contains the documents that the server does not store, by the keys of model.NodeState.Unstored.
type unstored map[string]failure

// failure is the last error, and the time of the first one.
type failure struct {
	since time.Time
	text  string
}

// reasons returns one line per document.
func (u unstored) reasons() map[string]string {
	out := make(map[string]string, len(u))
	for what, f := range u {
		out[what] = fmt.Sprintf("%s not stored since %s: %s", what, f.since.Format(time.RFC3339), f.text)
	}

	return out
}

// SetUnstored records the reason why the server does not store a document; nil removes it.
func (n *Node) SetUnstored(what string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, is := n.unstored[what]
	switch {
	case err == nil:
		delete(n.unstored, what)
	case !is:
		before.since = time.Now().UTC()
		fallthrough
	default:
		before.text = bounds.Text(err.Error())
		n.unstored[what] = before
	}
	if is || err != nil {
		n.Shown.Notify()
	}
}

// Answer returns the state of the node for an answer to a request, with the reasons why it is not stored.
func (n *Node) Answer() model.NodeState {
	s := n.State()
	n.mu.Lock()
	defer n.mu.Unlock()
	s.Unstored = n.unstored.reasons()

	return s
}
