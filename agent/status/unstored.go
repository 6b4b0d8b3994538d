package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/model"
)

// Unstored names documents that the server does not store.
type Unstored string

// The documents that a node stores.
const (
	UnstoredState   Unstored = "state"
	UnstoredReports Unstored = "reports"
)

// unstored has the documents that the server does not store.
type unstored map[Unstored]failure

// failure is the last error, and the time of the first one.
type failure struct {
	since time.Time
	text  string
}

// list returns a line for each of the documents.
func (u unstored) list() []string {
	var out []string
	for _, what := range slices.Sorted(maps.Keys(u)) {
		out = append(out, fmt.Sprintf("%s not stored since %s: %s", what, u[what].since.Format(time.RFC3339), u[what].text))
	}

	return out
}

// SetUnstored records why the server does not store documents; nil ends it.
func (n *Node) SetUnstored(what Unstored, err error) {
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

// Answer returns the state of the node for answers to requests: with the reasons why it is not stored.
func (n *Node) Answer() model.NodeState {
	s := n.State()
	n.mu.Lock()
	defer n.mu.Unlock()
	s.Unstored = strings.Join(n.unstored.list(), "; ")

	return s
}
