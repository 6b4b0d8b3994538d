package cli

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/assignments"
	"github.com/musterfleet/muster/kvstore/nodes"
	"github.com/musterfleet/muster/model"
)

// CompletionFlag is the flag of fisk by which shells ask what may follow on a command line.
const CompletionFlag = "completion-bash"

// completionTime is how long a shell that completes a name waits for NATS.
const completionTime = time.Second

// CompleteNodes returns the names of the known nodes for a shell that completes a command line,
// nothing for any other command or where NATS does not answer at once.
func (e *Env) CompleteNodes() []string {
	return e.complete(func(ctx context.Context, s *kvstore.Store) (names []string) {
		all, _ := nodes.New(s).Nodes(ctx)
		for _, n := range all {
			names = append(names, n.Node)
		}

		return names
	})
}

// CompleteGroups is CompleteNodes for groups: those of known nodes, and those that something
// is assigned to.
func (e *Env) CompleteGroups() []string {
	return e.complete(func(ctx context.Context, s *kvstore.Store) []string {
		names := []string{model.GroupAll}
		all, _ := nodes.New(s).Nodes(ctx)
		for _, n := range all {
			names = append(names, n.Groups...)
		}
		assigned, _ := assignments.New(s).List(ctx)
		for _, a := range assigned {
			if family, _, ok := model.SplitKey(a.Key); ok && strings.HasPrefix(family, model.GroupFamily("")) {
				names = append(names, strings.TrimPrefix(family, model.GroupFamily("")))
			}
		}

		return names
	})
}

// CompleteManifests is CompleteNodes for the names of what is assigned.
func (e *Env) CompleteManifests() []string {
	return e.complete(func(ctx context.Context, s *kvstore.Store) (names []string) {
		assigned, _ := assignments.New(s).List(ctx)
		for _, a := range assigned {
			names = append(names, a.Name)
		}

		return names
	})
}

// CompleteAssignments is CompleteNodes for the names and keys of what is assigned.
func (e *Env) CompleteAssignments() []string {
	return e.complete(func(ctx context.Context, s *kvstore.Store) (names []string) {
		assigned, _ := assignments.New(s).List(ctx)
		for _, a := range assigned {
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

// complete returns the names that read finds within completionTime, each once, in order. It asks
// people nothing, and logs nothing: what is written would be in the middle of a command line.
func (e *Env) complete(read func(context.Context, *kvstore.Store) []string) []string {
	options := e.Flags.Connect
	if options.User != "" && options.PasswordFile == "" && options.Password == "" {
		options.Password = os.Getenv(envPassword)
	}
	if !e.Given(CompletionFlag) || options.User != "" && options.PasswordFile == "" && options.Password == "" {
		return nil
	}
	options.Name, options.Timeout = "muster "+Version(), completionTime
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	store, err := kvstore.Open(ctx, options, e.Flags.Prefix)
	if err != nil {
		return nil
	}
	defer store.Conn().Close()

	return completable(read(ctx, store))
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
