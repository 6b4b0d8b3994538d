package attack

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// agent is what the victim runs: it serves requests, takes commands and watches its
// assignments, as muster's agent does.
type agent struct {
	watch *kvtest.Watching

	mu   sync.Mutex
	did  []string
	seen int
	// taken are the commands that it ever took, by their subjects.
	taken map[string]bool
}

// serve runs the agent of the victim until the test ends.
func (f *fleet) serve(t *testing.T) {
	t.Helper()
	store := kvtest.BindTo(t, f.connect(t, victim, len(f.servers)/2))
	a := &agent{taken: map[string]bool{}}
	groups := groupsOf(victim)
	answer := func(verb string) requests.Answer {
		return func(context.Context, []byte) (any, error) { a.note(verb); return victim, nil }
	}
	accept := func(verb string) requests.Accept {
		return func(_ context.Context, _ *model.Sender, request []byte, _ func(model.EnsureResponse)) {
			a.note(verb + " " + string(request))
		}
	}
	kvtest.Serve(t, store, requests.ServeOptions{
		Node: victim, Groups: groups, Status: answer("status"), Facts: answer("facts"), Ping: answer("ping"),
		Ensure: accept("ensure"), Run: accept("run"), Preview: accept("preview"),
	})
	kvtest.TakeCommands(t, store, requests.CommandOptions{Node: victim, Groups: groups, Audit: kvtest.Never}, func(c requests.Command) { a.take(store.Names.Command(c.Family, kvstore.Token(c.ID)), c.ID) })
	a.watch = kvtest.Watch(t, store, watch.Options{Node: victim, Groups: groups, Audit: kvtest.Never, GroupJitter: time.Millisecond})
	a.watch.Has(t, "group.all.own=plain", "group.db.own="+secret+"group.db.own", "node.web02.own="+secret+"node.web02.own")
	f.agent = a
	f.settle(t)
}

func (a *agent) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.did = append(a.did, what)
}

// take notes a command.
func (a *agent) take(subject, id string) {
	a.note("command " + id)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken[subject] = true
}

// settle waits until the agent has handled all requests, and clears the record.
func (f *fleet) settle(t testing.TB) {
	t.Helper()
	if f.agent == nil {
		return
	}
	want, queued := map[string]uint64{}, []string{}
	mine := func(key string) bool {
		family, _, _ := model.SplitKey(key)
		return slices.Contains(model.Families(victim, groupsOf(victim)), family)
	}
	for seq, m := range f.last["KV_MUSTER_MANIFESTS"].messages {
		key, _, _ := strings.Cut(strings.TrimPrefix(m, "$KV.MUSTER_MANIFESTS."), " ")
		if mine(key) {
			want[key] = max(want[key], seq)
		}
	}
	for _, m := range f.last["MUSTER_COMMANDS"].messages {
		if subject, _, _ := strings.Cut(m, " "); mine(strings.TrimPrefix(subject, "muster.command.")) {
			queued = append(queued, subject)
		}
	}
	kvtest.Eventually(t, "assignments of "+victim, func() (bool, string) {
		got := map[string]uint64{}
		for key, e := range f.agent.watch.AtLastWake() {
			got[key] = e.Revision
		}
		return maps.Equal(got, want), fmt.Sprintf("%v, want %v", got, want)
	})
	kvtest.Eventually(t, "commands of "+victim, func() (bool, string) {
		f.agent.mu.Lock()
		defer f.agent.mu.Unlock()
		return !slices.ContainsFunc(queued, func(subject string) bool { return !f.agent.taken[subject] }), fmt.Sprintf("%v, want %v", f.agent.taken, queued)
	})
	kvtest.Answers(t, f.admin, "muster.ping.node."+victim, nil, 1)
	f.agent.breaches()
}

// awaitDone waits until the agent has handled n requests of a verb. Each verb has its own subscription, so
// requests of other verbs prove nothing.
func (f *fleet) awaitDone(t testing.TB, verb string, count int) {
	t.Helper()
	if f.agent == nil {
		return
	}
	kvtest.Eventually(t, verb+" by "+victim, func() (bool, string) {
		f.agent.mu.Lock()
		defer f.agent.mu.Unlock()
		done := 0
		for _, what := range f.agent.did {
			if what == verb || strings.HasPrefix(what, verb+" ") {
				done++
			}
		}
		return done >= count, fmt.Sprintf("%d of %d times", done, count)
	})
}

// breaches are what the agent did since the last time.
func (a *agent) breaches() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for _, what := range a.did {
		out = append(out, fmt.Sprintf("%s did: %.100q", victim, what))
	}
	wakes, keys := a.watch.Wakes()
	if wakes > a.seen {
		out = append(out, fmt.Sprintf("%s was woken, for %v in the end", victim, keys))
	}
	a.did, a.seen = nil, wakes

	return out
}
