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

// Completion provides names for a shell that completes a command line. It sends each request to NATS once, because
// fisk requests the names of one word several times, and ends after completionTime. Without StartCompletion it
// provides none.
type Completion struct {
	connect func(context.Context) (*kvstore.Store, error)
	// until is zero unless a shell completes the command line.
	until    time.Time
	asked    bool
	store    *kvstore.Store
	nodes    func() []model.Node
	assigned func() []model.Entry
}

// StartCompletion prepares the completion of a command line.
func (c *Completion) StartCompletion() {
	c.until = time.Now().Add(completionTime)
	c.nodes = sync.OnceValue(func() (all []model.Node) {
		c.within(func(ctx context.Context) { all, _ = kvstore.NewNodes(c.store).Nodes(ctx) })
		return all
	})
	c.assigned = sync.OnceValue(func() (all []model.Entry) {
		c.within(func(ctx context.Context) { all, _ = kvstore.NewAssignments(c.store).List(ctx) })
		return all
	})
}

func (c *Completion) within(read func(context.Context)) {
	ctx, cancel := context.WithDeadline(context.Background(), c.until)
	defer cancel()
	read(ctx)
}

// NamesAsked reports whether the shell requested names.
func (c *Completion) NamesAsked() bool { return c.asked }

// CompleteNodes returns the names of the known nodes for completion. It returns nothing if no shell completes
// this command line or NATS does not answer in time.
func (c *Completion) CompleteNodes() []string {
	return c.complete(func() (names []string) {
		for _, n := range c.nodes() {
			names = append(names, n.Node)
		}

		return names
	})
}

// CompleteGroups returns the groups of known nodes and the groups with assignments, like CompleteNodes.
func (c *Completion) CompleteGroups() []string {
	return c.complete(func() []string {
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
func (c *Completion) CompleteManifests() []string {
	return c.complete(func() (names []string) {
		for _, a := range c.assigned() {
			names = append(names, a.Name)
		}

		return names
	})
}

// CompleteAssignments returns the names and keys of assignments, like CompleteNodes.
func (c *Completion) CompleteAssignments() []string {
	return c.complete(func() (names []string) {
		for _, a := range c.assigned() {
			names = append(names, a.Name, a.Key)
		}

		return names
	})
}

// CompleteNodesAndAssignments returns names of nodes, and names and keys of assignments, like CompleteNodes.
func (c *Completion) CompleteNodesAndAssignments() []string {
	all := append(c.CompleteNodes(), c.CompleteAssignments()...)
	slices.Sort(all)

	return slices.Compact(all)
}

// complete returns the sorted, distinct names that read returns.
func (c *Completion) complete(read func() []string) []string {
	if c.until.IsZero() {
		return nil
	}
	if !c.asked {
		c.asked = true
		c.within(func(ctx context.Context) { c.store, _ = c.connect(ctx) })
	}
	if c.store == nil {
		return nil
	}

	return completable(read())
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
