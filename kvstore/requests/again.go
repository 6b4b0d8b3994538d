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
	// repeatEvery is the pause before a request is sent again to a node without an answer.
	repeatEvery = 2 * time.Second
	// repeatFor is how long such requests are repeated on a stable connection.
	repeatFor = kvstore.Settling + time.Second
	// A node leaves a hung server after up to 20 s, and may first try that server again for 5 s. In
	// that time its request is repeated less often.
	repeatLateEvery = 6 * time.Second
	repeatLateFor   = 32 * time.Second
	// maxRepeats limits the repetitions. A node answers each of them, see maxAnswers.
	maxRepeats = 8
)

// repeater decides which requests are sent again. It is used by one goroutine.
type repeater interface {
	// isRepeated reports whether requests may be sent again.
	isRepeated() bool
	// answered records the answer of a node.
	answered(node string)
	// due returns the requests to send again now.
	due(now time.Time) []Request
	// isFinal reports whether "no responders" is the final answer. It is not final while nodes may
	// still reconnect.
	isFinal(now time.Time) bool
}

// never is a repeater that sends nothing again.
type never struct{}

func (never) isRepeated() bool        { return false }
func (never) answered(string)         {}
func (never) due(time.Time) []Request { return nil }
func (never) isFinal(time.Time) bool  { return true }

// repeats is a repeater for requests that a node executes once.
type repeats struct {
	// waiting holds the requests to single nodes without an answer, by subject. groups holds all other
	// requests.
	waiting map[string]Request
	groups  []Request
	// awaited holds the nodes without an answer that the caller expects.
	awaited map[string]bool
	// subject returns the request subject of a node.
	subject func(node string) string
	// reconnected returns the time of the last reconnect.
	reconnected func() time.Time
	// begun is the time of the first request. toNodes and toGroups are the times of the last requests
	// to nodes and groups.
	begun, toNodes, toGroups time.Time
	count                    int
}

// newRepeats returns the repeater for requests that are sent now.
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

// isSettling reports whether nodes may still reconnect after the last loss.
func (r *repeats) isSettling(now time.Time) bool { return now.Sub(r.reconnected()) < kvstore.Settling }

// isFinal reports whether no further node will subscribe. Awaited nodes may still reconnect after an
// outage that ended before this process started.
func (r *repeats) isFinal(now time.Time) bool { return !r.isSettling(now) && len(r.awaited) == 0 }

// due returns the requests to single nodes without an answer, for a limited time. It adds the requests
// to groups while awaited nodes are missing, once after a reconnect, and once when all nodes had time
// to reconnect.
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
