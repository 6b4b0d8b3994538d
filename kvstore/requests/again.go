package requests

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

const (
	// repeatEvery is how often a node without an answer gets its request again.
	repeatEvery = 2 * time.Second
	// repeatFor is for how long after the first time, where the connection was not lost.
	repeatFor = kvstore.Settling + time.Second
	// A node leaves a hung server after up to 20 s, and may first try that server again for 5 s. Until then it gets its
	// request less often.
	repeatLateEvery = 6 * time.Second
	repeatLateFor   = 32 * time.Second
	// maxRepeats bounds the repetitions: a node answers each, see maxAnswers.
	maxRepeats = 8
)

// repeater says which requests are sent again. One goroutine uses it.
type repeater interface {
	// isRepeated reports whether anything is sent again at all.
	isRepeated() bool
	// answered notes the answer of a node.
	answered(node string)
	// due returns what is sent again now.
	due(now time.Time) []Request
	// isFinal reports whether nobody listens where nobody does now: else nodes may be about to
	// connect again.
	isFinal(now time.Time) bool
}

// never repeats nothing.
type never struct{}

func (never) isRepeated() bool        { return false }
func (never) answered(string)         {}
func (never) due(time.Time) []Request { return nil }
func (never) isFinal(time.Time) bool  { return true }

// repeats are the requests of a question that are sent again, as a node executes each once.
type repeats struct {
	// waiting are those to nodes without an answer, by subject; groups are all others.
	waiting map[string]Request
	groups  []Request
	// awaited are the nodes without an answer that should listen, as those that send requests know.
	awaited map[string]bool
	// subject returns that of the request to a node.
	subject func(node string) string
	// reconnected returns when the connection was last made again.
	reconnected func() time.Time
	// begun is when the question was sent, toNodes and toGroups when they got it last.
	begun, toNodes, toGroups time.Time
	count                    int
}

// newRepeats returns the repeats of requests that are sent now.
func newRepeats(store *kvstore.Store, all []Request, now time.Time) *repeats {
	names := store.Names()
	verb := names.VerbOf(all[0].Subject)
	out := &repeats{
		waiting: map[string]Request{}, awaited: map[string]bool{}, reconnected: store.Reconnected, begun: now, toNodes: now, toGroups: now,
		subject: func(node string) string { return names.Request(verb, model.NodeFamily(node)) },
	}
	for _, r := range all {
		for _, node := range r.Awaited {
			out.awaited[node] = true
		}
		if strings.HasPrefix(r.Subject, out.subject("")) {
			out.waiting[r.Subject] = r
			continue
		}
		out.groups = append(out.groups, r)
	}

	return out
}

func (*repeats) isRepeated() bool { return true }

func (r *repeats) answered(node string) {
	delete(r.waiting, r.subject(node))
	delete(r.awaited, node)
}

// isSettling reports whether nodes may be about to connect again.
func (r *repeats) isSettling(now time.Time) bool { return now.Sub(r.reconnected()) < kvstore.Settling }

// isFinal reports whether nobody is about to listen: after an outage that was before this process, a node that should
// may be.
func (r *repeats) isFinal(now time.Time) bool { return !r.isSettling(now) && len(r.awaited) == 0 }

// due returns the requests to nodes that did not answer yet, for a while, and so those to groups where nodes are
// awaited; to all groups once the connection is back, and once all nodes are.
func (r *repeats) due(now time.Time) []Request {
	if r.count >= maxRepeats {
		return nil
	}
	var out []Request
	up := r.reconnected()
	isLost := r.toNodes.Before(up)
	since, age := now.Sub(r.toNodes), now.Sub(r.begun)
	isDue := isLost || since >= repeatEvery && (r.isSettling(r.toNodes) || age < repeatFor) || since >= repeatLateEvery && age < repeatLateFor
	if isDue {
		r.toNodes = now
		out = slices.Collect(maps.Values(r.waiting))
	}
	settled := up.Add(kvstore.Settling)
	if isDue && len(r.awaited) > 0 || r.toGroups.Before(up) || r.toGroups.Before(settled) && !now.Before(settled) {
		r.toGroups = now
		out = append(out, r.groups...)
	}
	if len(out) > 0 {
		r.count++
	}

	return out
}
