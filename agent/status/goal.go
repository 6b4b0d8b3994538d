package status

import (
	"cmp"
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

// Unconverged returns why not all is in its desired state; active are the keys that run,
// away is why NATS cannot be reached, empty while it can. A node without NATS that knows
// its assignments from before is judged by those.
func Unconverged(status model.AgentStatus, active []string, sync model.Sync, away string) []string {
	var out []string
	switch {
	case sync.Complete():
		out = append(out, status.Notices...)
	case away != "" && len(active) > 0 && len(sync.Known) == 0:
	case away != "":
		out = append(out, "the assignments are not known: "+away)
	case sync.Err != nil:
		out = append(out, "the assignments are not known: "+sync.Err.Error())
	default:
		out = append(out, "the assignments are not known: the bucket did not answer")
	}
	if status.Paused != nil {
		out = append(out, "the node is "+status.Paused.String())
	}
	for _, m := range status.Manifests {
		if m.State.Late != "" {
			out = append(out, m.Key+": "+strings.TrimPrefix(m.State.Late, m.Key+": "))
		}
		// Another one may be active in its place, or its condition is false.
		if slices.Contains(active, m.Key) {
			out = append(out, unconverged(m)...)
		}
	}

	return out
}

// unconverged returns why a manifest that runs is not in its desired state.
func unconverged(m model.AssignedManifest) []string {
	switch m.State.Outcome {
	case model.OutcomeStable, model.OutcomeChanged:
		return nil
	case model.OutcomeNoop:
		return []string{fmt.Sprintf("%s: %d of its resources would change, and it is in noop", m.Key, m.State.Counts.Noop)}
	case "":
		return []string{m.Key + ": " + cmp.Or(m.State.Error, "it has not run")}
	}
	errs := []string{m.State.Error}
	// What the last run as a whole found is older than what the run of a part did.
	if m.Last != nil && slices.Contains(m.Last.Errors, m.State.Error) {
		errs = m.Last.Errors
	}
	var out []string
	for _, e := range errs {
		out = append(out, strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", m.Key, m.State.Outcome, e), ": "))
	}
	if more := m.State.Counts.Failed - len(errs); more > 0 {
		out = append(out, fmt.Sprintf("%s: %s: and %d more (see muster fleet reports)", m.Key, m.State.Outcome, more))
	}

	return out
}
