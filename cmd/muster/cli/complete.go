package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// CompletionFlag is the flag that fisk adds when a shell completes a command line.
const CompletionFlag = "completion-bash"

// completionTime limits the wait for NATS during completion.
const completionTime = time.Second

// completion provides names for a shell that completes a command line. It sends each request to NATS once,
// because fisk requests the names of one word several times, and ends after completionTime.
type completion struct {
	// store returns nil if NATS does not answer.
	store    func() *kvstore.Store
	nodes    func() []model.Node
	assigned func() []model.Entry
	asked    bool
}

// newCompletion returns a completion that uses connect.
func newCompletion(connect func(context.Context) (*kvstore.Store, error)) *completion {
	until := time.Now().Add(completionTime)
	within := func(read func(context.Context)) {
		ctx, cancel := context.WithDeadline(context.Background(), until)
		defer cancel()
		read(ctx)
	}
	store := sync.OnceValue(func() (opened *kvstore.Store) {
		within(func(ctx context.Context) { opened, _ = connect(ctx) })
		return opened
	})

	return &completion{
		store: store,
		nodes: sync.OnceValue(func() (all []model.Node) {
			within(func(ctx context.Context) { all, _ = kvstore.NewNodes(store()).Nodes(ctx) })
			return all
		}),
		assigned: sync.OnceValue(func() (all []model.Entry) {
			within(func(ctx context.Context) { all, _ = kvstore.NewAssignments(store()).List(ctx) })
			return all
		}),
	}
}

// StartCompletion marks this command line as one that a shell completes.
func (e *Env) StartCompletion() { e.completion = newCompletion(e.openUnasked) }

// NamesAsked reports whether the shell requested names.
func (e *Env) NamesAsked() bool { return e.completion != nil && e.completion.asked }

// CompleteNodes returns the names of the known nodes for completion. It returns nothing if no shell completes
// this command line or NATS does not answer in time.
func (e *Env) CompleteNodes() []string {
	return e.complete(func(c *completion) (names []string) {
		for _, n := range c.nodes() {
			names = append(names, n.Node)
		}

		return names
	})
}

// CompleteGroups returns the groups of known nodes and the groups with assignments, like CompleteNodes.
func (e *Env) CompleteGroups() []string {
	return e.complete(func(c *completion) []string {
		names := []string{model.GroupAll}
		for _, n := range c.nodes() {
			names = append(names, n.Groups...)
		}
		for _, a := range c.assigned() {
			if family, _, ok := model.SplitKey(a.Key); ok && strings.HasPrefix(family, model.GroupFamily("")) {
				names = append(names, strings.TrimPrefix(family, model.GroupFamily("")))
			}
		}

		return names
	})
}

// CompleteManifests returns the names of assigned manifests, like CompleteNodes.
func (e *Env) CompleteManifests() []string {
	return e.complete(func(c *completion) (names []string) {
		for _, a := range c.assigned() {
			names = append(names, a.Name)
		}

		return names
	})
}

// CompleteAssignments returns the names and keys of assignments, like CompleteNodes.
func (e *Env) CompleteAssignments() []string {
	return e.complete(func(c *completion) (names []string) {
		for _, a := range c.assigned() {
			names = append(names, a.Name, a.Key)
		}

		return names
	})
}

// CompleteNodesAndAssignments returns names of nodes, and names and keys of assignments, like CompleteNodes.
func (e *Env) CompleteNodesAndAssignments() []string {
	all := append(e.CompleteNodes(), e.CompleteAssignments()...)
	slices.Sort(all)

	return slices.Compact(all)
}

// complete returns the sorted, distinct names that read returns.
func (e *Env) complete(read func(*completion) []string) []string {
	if e.completion == nil {
		return nil
	}
	e.completion.asked = true
	if e.completion.store() == nil {
		return nil
	}

	return completable(read(e.completion))
}

// openUnasked connects to NATS for completion. It does not prompt or log, because any output would appear in
// the user's command line.
func (e *Env) openUnasked(ctx context.Context) (*kvstore.Store, error) {
	options := e.Flags.Connect
	if options.User != "" && options.PasswordFile == "" && options.Password == "" {
		if options.Password = os.Getenv(envPassword); options.Password == "" {
			return nil, errors.New("the password would be asked for")
		}
	}
	options.Name, options.Timeout = "muster "+Version(), completionTime
	store, err := kvstore.Open(ctx, options, e.Flags.Prefix)
	if err == nil {
		e.store = store
	}

	return store, err
}

// completable returns the sorted, distinct names that a shell can complete. Servers may store any text, and
// shells expand it. It omits flags and words with a meaning to a shell.
func completable(names []string) []string {
	isName := func(s string) bool { return model.IsToken(strings.ReplaceAll(s, ".", "")) && s[0] != '-' }
	names = slices.DeleteFunc(names, func(s string) bool { return !isName(s) })
	slices.Sort(names)

	return slices.Compact(names)
}
