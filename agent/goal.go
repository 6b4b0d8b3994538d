package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// ErrUnconverged is an agent with a goal that ended while something is not in its desired
// state.
var ErrUnconverged = errors.New("not in the desired state")

// Goal is when an agent ends by itself; the zero value is never. It then waits for the
// bucket as always, and for bundles that are being downloaded.
type Goal struct {
	// Once ends it when each manifest has run.
	Once bool
	// Quiet ends it when nothing has changed for that long: no assignment, and nothing on
	// the machine.
	Quiet time.Duration
}

// IsSet reports whether the agent ends by itself.
func (g Goal) IsSet() bool { return g.Once || g.Quiet > 0 }

// goal is a Goal, and what came of it.
type goal struct {
	Goal
	// reached is that the agent ended by itself, reasons are why not all is in its desired
	// state.
	reached bool
	reasons []string
}

// err returns what Run returns: nil where there was no goal, or it was reached and all is
// in its desired state.
func (g *goal) err() error {
	switch {
	case !g.IsSet():
		return nil
	case !g.reached:
		return fmt.Errorf("%w: the agent was ended before it was done", ErrUnconverged)
	case len(g.reasons) == 0:
		return nil
	}
	var all model.Problems
	for _, r := range g.reasons {
		all.Append(model.Problem{Message: r, Cause: ErrUnconverged})
	}

	return all
}

// endAt returns when the goal is reached if nothing happens; zero is never. It is called
// when nothing is due.
func (l *loop) endAt(now time.Time) time.Time {
	m := l.manifests
	switch {
	case !l.goal.IsSet() || m.set.Fetching():
		return time.Time{}
	case l.goal.Once:
		return now
	default:
		return m.runner.changedAt.Add(l.goal.Quiet)
	}
}

// end notes that the goal is reached.
func (l *loop) end() {
	state := l.manifests.status.State()
	active := l.manifests.set.Keys()
	_, sync := l.watch.Entries()
	l.goal.reached = true
	l.goal.reasons = unconverged(state, active, sync)
}

// unconverged returns why not all is in its desired state. A node without NATS that knows
// its assignments from before is judged by those.
func unconverged(state model.NodeState, active []string, sync model.Sync) []string {
	var out []string
	switch {
	case !sync.Complete() && len(active) == 0 && sync.Err != nil:
		out = append(out, "the assignments are not known: "+sync.Err.Error())
	case !sync.Complete() && len(active) == 0:
		out = append(out, "the assignments are not known: the bucket did not answer")
	case sync.Complete() && state.Message != "":
		out = append(out, state.Message)
	}
	for key, s := range state.Manifests {
		if s.Late != "" {
			out = append(out, key+": "+strings.TrimPrefix(s.Late, key+": "))
		}
		if !slices.Contains(active, key) {
			continue // another one is active in its place, or its condition is false
		}
		switch s.Outcome {
		case model.OutcomeStable, model.OutcomeChanged:
		case model.OutcomeNoop:
			out = append(out, fmt.Sprintf("%s: %d of its resources would change, and it is in noop", key, s.Counts.Noop))
		case "":
			out = append(out, key+": it has not run")
		default:
			out = append(out, strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", key, s.Outcome, s.Error), ": "))
		}
	}
	slices.Sort(out)

	return out
}
