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

// CompletionFlag is the flag of fisk by which shells ask what may follow on a command line.
const CompletionFlag = "completion-bash"

// completionTime is how long a shell that completes a name waits for NATS.
const completionTime = time.Second

// completion is what a shell that completes a command line is told. NATS is asked for each thing once, and for
// all of it within completionTime: fisk asks for the names of one word several times.
type completion struct {
	// store returns nil where NATS does not answer.
	store    func() *kvstore.Store
	nodes    func() []model.Node
	assigned func() []model.Entry
	asked    bool
}

// newCompletion returns the completion by what connect opens.
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

// StartCompletion makes this command line one that a shell completes: what completes names has some from now on.
func (e *Env) StartCompletion() { e.completion = newCompletion(e.openUnasked) }

// NamesAsked reports whether a name was to be completed.
func (e *Env) NamesAsked() bool { return e.completion != nil && e.completion.asked }

// CompleteNodes returns the names of the known nodes for a shell that completes a command line,
// nothing for any other command or where NATS does not answer at once.
func (e *Env) CompleteNodes() []string {
	return e.complete(func(c *completion) (names []string) {
		for _, n := range c.nodes() {
			names = append(names, n.Node)
		}

		return names
	})
}

// CompleteGroups is CompleteNodes for groups: those of known nodes, and those that something
// is assigned to.
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

// CompleteManifests is CompleteNodes for the names of what is assigned.
func (e *Env) CompleteManifests() []string {
	return e.complete(func(c *completion) (names []string) {
		for _, a := range c.assigned() {
			names = append(names, a.Name)
		}

		return names
	})
}

// CompleteAssignments is CompleteNodes for the names and keys of what is assigned.
func (e *Env) CompleteAssignments() []string {
	return e.complete(func(c *completion) (names []string) {
		for _, a := range c.assigned() {
			names = append(names, a.Name, a.Key)
		}

		return names
	})
}

// CompleteNodesAndAssignments is CompleteNodes for names of nodes, and names and keys of what
// is assigned.
func (e *Env) CompleteNodesAndAssignments() []string {
	all := append(e.CompleteNodes(), e.CompleteAssignments()...)
	slices.Sort(all)

	return slices.Compact(all)
}

// complete returns the names that read finds, each once, in order.
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

// openUnasked is Store for a shell that completes a command line. It asks people nothing, and logs nothing: what
// is written would be in the middle of that line.
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

// completable returns the names that can be completed, sorted and each once. Shells expand what
// they are given, and what servers store may be anything: names are words without any meaning
// to a shell, and not flags either.
func completable(names []string) []string {
	isName := func(s string) bool { return model.IsToken(strings.ReplaceAll(s, ".", "")) && s[0] != '-' }
	names = slices.DeleteFunc(names, func(s string) bool { return !isName(s) })
	slices.Sort(names)

	return slices.Compact(names)
}
