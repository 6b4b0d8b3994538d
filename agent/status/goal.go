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

// ErrUnconverged means that an agent with a goal ended while a resource is not in its desired state.
var ErrUnconverged = errors.New("not in the desired state")

// Goal is the condition at which an agent exits. The zero value means never. The agent first waits for the
// bucket and for downloads of bundles.
type Goal struct {
	// Once ends it after each manifest has run.
	Once bool
	// Quiet ends it after this time without a change of an assignment or of the machine.
	Quiet time.Duration
}

// IsSet reports whether the agent has a goal.
func (g Goal) IsSet() bool { return g.Once || g.Quiet > 0 }

// Result is the result of a goal.
type Result struct {
	// Reached means that the goal was reached. Reasons are the reasons why a resource is not in its desired
	// state.
	Reached bool
	Reasons []string
}

// Err returns nil without a goal, or if it was reached and every resource is in its desired state. Otherwise
// it returns an error that wraps ErrUnconverged, with a model.Problem for each reason.
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

// Unconverged returns the reasons why a resource is not in its desired state. active are the active keys.
// away is the reason why NATS is unreachable, empty if it is reachable. Without NATS, the stored assignments
// count.
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
		// Another key of the name may be active, or the condition is false.
		if slices.Contains(active, m.Key) {
			out = append(out, unconverged(m)...)
		}
	}

	return out
}

// unconverged returns the reasons why an active manifest is not in its desired state.
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
	// A partial run may be newer than the last full run.
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
