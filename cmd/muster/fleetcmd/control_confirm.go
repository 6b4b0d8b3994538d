package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"

	"github.com/musterfleet/muster/model"
)

const (
	// pollInterval is the minimum pause between two reads of the nodes. The pause is also at least
	// pollFactor times as long as the last read took.
	pollInterval = 300 * time.Millisecond
	pollFactor   = 5
)

// writtenChange is a written key, and the state of each node.
type writtenChange struct {
	PauseResult
	Nodes []ask.Confirmation `json:"nodes,omitempty"`

	change ask.Change
	target fleet.Target
}

// confirmWait waits until nodes confirm a change.
type confirmWait struct {
	timeout time.Duration
	// failed is the start of the error for failed nodes; the default is "refused by".
	failed string
}

// addWait adds the --timeout flag.
func (w *confirmWait) addWait(cmd *fisk.CmdClause) {
	cmd.Flag("timeout", "Maximum time to wait until the nodes confirm; 0 does not wait").Default("10s").DurationVar(&w.timeout)
}

// check validates --timeout.
func (w *confirmWait) check() error {
	if w.timeout < 0 {
		return cli.Usagef("--timeout must not be negative")
	}

	return nil
}

// await waits until each known node confirms, refuses or is unreachable. It returns an error if nodes cannot
// be read, a node refuses, or a node does not confirm in time.
func (w *confirmWait) await(ctx context.Context, env *cli.Env, store *Store, known []model.Node, all []writtenChange) error {
	if w.timeout == 0 || len(all) == 0 {
		return nil
	}
	var nodes []*ask.Confirmation
	for i := range all {
		for _, n := range known {
			if all[i].target.Includes(n.NodeState) {
				all[i].Nodes = append(all[i].Nodes, ask.NewConfirmation(all[i].change, n))
			}
		}
		for k := range all[i].Nodes {
			nodes = append(nodes, &all[i].Nodes[k])
		}
	}
	limit, done := context.WithTimeout(ctx, w.timeout)
	defer done()
	line := env.Print.Progress()
	defer line.Clear()
	waiter := ask.Waiter{
		States: func(ctx context.Context) (func(string) (model.Node, bool), error) {
			now, err := store.Nodes(ctx)
			states := selection{known: now}.states()
			return func(name string) (model.Node, bool) { n, known := states[name]; return n, known }, err
		},
		Pause: func(ctx context.Context, took time.Duration) {
			select {
			case <-ctx.Done():
			case <-time.After(max(pollInterval, pollFactor*took)):
			}
		},
		OnPending: func(int) {
			counts, open := count(all)
			line.Show("%d of %d nodes confirmed, waiting for %s", counts[ask.StateDone], total(counts), print.Some(open, "and others"))
		},
	}
	if err := waiter.Wait(limit, nodes); err != nil {
		return err
	}
	counts, _ := count(all)

	return w.verdict(ctx, counts)
}

// count counts the nodes by state, and returns the names of the pending nodes.
func count(all []writtenChange) (counts map[ask.State]int, open []string) {
	counts = map[ask.State]int{}
	for _, w := range all {
		for _, o := range w.Nodes {
			counts[o.State]++
			if o.State == ask.StatePending {
				open = append(open, o.Node)
			}
		}
	}

	return counts, open
}

func total(counts map[ask.State]int) (all int) {
	for _, n := range counts {
		all += n
	}

	return all
}

// verdict returns an error for nodes that failed or did not confirm. Unreachable nodes are not an error.
func (w *confirmWait) verdict(ctx context.Context, counts map[ask.State]int) error {
	all := print.Count(total(counts), "node")
	var failed []error
	if n := counts[ask.StateFailed]; n > 0 {
		failed = append(failed, fmt.Errorf("%s %d of %s", cmp.Or(w.failed, "refused by"), n, all))
	}
	switch n := counts[ask.StatePending]; {
	case n > 0 && ctx.Err() != nil:
		failed = append(failed, fmt.Errorf("%w: written, and not confirmed by %d of %s (see muster fleet nodes)", context.Cause(ctx), n, all))
	case n > 0:
		failed = append(failed, fmt.Errorf("not confirmed by %d of %s after %s (see muster fleet nodes)", n, all, w.timeout))
	}

	return errors.Join(failed...)
}

// printPauses prints the written keys, a summary for many targets, and the confirmations of the nodes.
func printPauses(p print.Printer, what string, all []writtenChange, line func(writeSummary) string) {
	keys, lines := make([]writeSummary, len(all)), make([]string, len(all))
	for i, w := range all {
		keys[i] = writeSummary{w.Key, w.Revision}
		lines[i] = line(keys[i])
	}
	printWritten(p, what, keys, lines)
	printConfirmations(p, all)
}

// printConfirmations groups nodes by their text, largest group first.
func printConfirmations(p print.Printer, all []writtenChange) {
	var texts []string
	nodes := map[string][]string{}
	for _, w := range all {
		for _, o := range w.Nodes {
			if nodes[o.Text] == nil {
				texts = append(texts, o.Text)
			}
			nodes[o.Text] = append(nodes[o.Text], o.Node)
		}
	}
	slices.SortStableFunc(texts, func(a, b string) int { return cmp.Compare(len(nodes[b]), len(nodes[a])) })
	for _, text := range texts {
		p.Printf("%s  %s\n", print.Text(print.Some(nodes[text], "--json has all")), print.Text(print.OneLine(text)))
	}
}
