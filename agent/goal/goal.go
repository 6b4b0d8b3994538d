// Package goal is when an agent ends by itself, and what comes of that.
package goal

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

// Goal is when an agent ends by itself; the zero value is never. It waits for the
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

// Result is what came of a goal.
type Result struct {
	// Reached is that the agent ended by itself, Reasons are why not all is in its desired
	// state.
	Reached bool
	Reasons []string
}

// Err returns nil where there was no goal, or it was reached and all is in its desired
// state; else an error that wraps ErrUnconverged, with a model.Problem for each reason.
func (g Goal) Err(r Result) error {
	switch {
	case !g.IsSet():
		return nil
	case !r.Reached:
		return fmt.Errorf("%w: the agent was ended before it was done", ErrUnconverged)
	}
	var all model.Problems
	for _, reason := range r.Reasons {
		all.Append(model.Problem{Message: reason, Cause: ErrUnconverged})
	}

	return all.Err()
}

// Unconverged returns why not all is in its desired state; active are the keys that run. A node without NATS that knows
// its assignments from before is judged by those.
func Unconverged(state model.NodeState, active []string, sync model.Sync) []string {
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
