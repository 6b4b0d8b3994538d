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
	// pollInterval is the pause between two reads of the nodes, pollShare how many times as long as
	// such a read it is at least.
	pollInterval = 300 * time.Millisecond
	pollShare    = 5
)

// confirmation is what a node does of what was written under a key.
type confirmation struct {
	Node  string    `json:"node"`
	State ask.State `json:"state"`
	Text  string    `json:"text"`
}

// writtenChange is what was written under a key, and what the nodes do of it.
type writtenChange struct {
	PauseResult
	Nodes []confirmation `json:"nodes,omitempty"`

	change change
	target fleet.Target
}

// change is what was written about nodes.
type change interface {
	// Status returns what a node does of it. known is whether the node has a state; settled is that a rejection in
	// that is of this change, and not of what was there before.
	Status(n model.Node, known, settled bool) ask.PauseStatus
	// Rejection returns why a node rejects what is under the key, empty where it does not.
	Rejection(n model.Node) string
}

// confirmWait waits until nodes confirm what was written.
type confirmWait struct {
	timeout time.Duration
	// failed is what begins the error of nodes that do not do it, without it "refused by".
	failed string
}

// addWait adds the flag.
func (w *confirmWait) addWait(cmd *fisk.CmdClause) {
	cmd.Flag("timeout", "Maximum time to wait until the nodes confirm; 0 does not wait").Default("10s").DurationVar(&w.timeout)
}

// check returns the error of the flag.
func (w *confirmWait) check() error {
	if w.timeout < 0 {
		return cli.Usagef("--timeout must not be negative")
	}

	return nil
}

// await waits until the known nodes of all do what was written, cannot be reached or refuse. The
// error is that nodes cannot be read, that some refused, or that some said nothing in time.
func (w *confirmWait) await(ctx context.Context, env *cli.Env, store *Store, known []model.Node, all []writtenChange) error {
	if w.timeout == 0 || len(all) == 0 {
		return nil
	}
	began := time.Now()
	before := map[string]model.Node{}
	for _, n := range known {
		before[n.Node] = n
	}
	for i := range all {
		all[i].Nodes = openNodes(all[i].target, known, before)
	}
	limit, done := context.WithTimeout(ctx, w.timeout)
	defer done()
	line := env.Print.Progress()
	defer line.Clear()
	for {
		asked := time.Now()
		now, err := store.Nodes(limit)
		switch {
		case err != nil && limit.Err() == nil:
			return err
		case err == nil:
			judgeAll(all, before, now, time.Since(began) >= ask.PauseSettling)
		}
		counts, open := count(all)
		if len(open) == 0 || limit.Err() != nil {
			return w.verdict(ctx, counts)
		}
		line.Show("%d of %d nodes confirmed, waiting for %s", counts[ask.StateDone], total(counts), print.Some(open, "and others"))
		select {
		case <-limit.Done():
		case <-time.After(max(pollInterval, pollShare*time.Since(asked))):
		}
	}
}

// openNodes returns the known nodes of a target, of which nothing is known yet.
func openNodes(t fleet.Target, known []model.Node, byName map[string]model.Node) []confirmation {
	open := func(name string) confirmation {
		pending := ask.PausePending()
		return confirmation{name, pending.State, pending.Text}
	}
	var out []confirmation
	if t.Node != "" {
		if _, is := byName[t.Node]; is {
			out = append(out, open(t.Node))
		}
		return out
	}
	for _, n := range known {
		if t.Includes(n.NodeState) {
			out = append(out, open(n.Node))
		}
	}

	return out
}

// judgeAll notes what the nodes do now of what was written.
func judgeAll(all []writtenChange, before map[string]model.Node, now []model.Node, settled bool) {
	states := map[string]model.Node{}
	for _, n := range now {
		states[n.Node] = n
	}
	for _, w := range all {
		for i, o := range w.Nodes {
			if o.State == ask.StatePending {
				n, known := states[o.Node]
				isNew := w.change.Rejection(n) != w.change.Rejection(before[o.Node])
				status := w.change.Status(n, known, settled || isNew)
				w.Nodes[i] = confirmation{o.Node, status.State, status.Text}
			}
		}
	}
}

// count counts the nodes by their state, and names those that are waited for.
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

// verdict returns the error of what nodes did. Those that cannot be reached are none.
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

// printPauses prints what was written, of many targets what and how many, and what the nodes do of it.
func printPauses(p print.Printer, what string, all []writtenChange, line func(writeSummary) string) {
	keys, lines := make([]writeSummary, len(all)), make([]string, len(all))
	for i, w := range all {
		keys[i] = writeSummary{w.Key, w.Revision}
		lines[i] = line(keys[i])
	}
	printWritten(p, what, keys, lines)
	printConfirmations(p, all)
}

// printConfirmations prints what nodes do, equal ones once, the most frequent first.
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
