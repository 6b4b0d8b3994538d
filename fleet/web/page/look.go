package page

import (
	"slices"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"

	"github.com/musterfleet/muster/fleet/web/page/texts"
	"github.com/musterfleet/muster/model"
)

// look is how a status is shown: by an icon of its own shape, a tone and a word, so that nobody
// depends on colours.
type look struct{ icon, tone, word string }

// unknown is the look of a word that this version does not know.
func unknown(word string) look { return look{"question", "gone", texts.Row(word)} }

// ofStatus returns the look of a status of a node, or of an assignment on one.
func ofStatus(s fleet.Status) look {
	switch s {
	case fleet.StatusOK:
		return look{"check", "ok", "OK"}
	case fleet.StatusUpToDate:
		return look{"check", "ok", "Up to date"}
	case fleet.StatusFailed:
		return look{"cross", "bad", "Failed"}
	case fleet.StatusRejected:
		return look{"ban", "rejected", "Rejected"}
	case fleet.StatusPending:
		return look{"clock", "wait", "Pending"}
	case fleet.StatusUnreachable:
		return look{"unlink", "gone", "Unreachable"}
	case fleet.StatusUnreadable:
		return look{"question", "gone", "Unreadable"}
	case fleet.StatusNoManifest:
		return look{"minus", "off", "No manifest"}
	case fleet.StatusStopped:
		return look{"stop", "off", "Stopped"}
	case fleet.StatusPaused:
		return look{"pause", "off", "Paused"}
	case fleet.StatusOverridden:
		return look{"minus", "off", "Overridden"}
	case fleet.StatusNotApplicable:
		return look{"minus", "off", "Not applicable"}
	case fleet.StatusUnassigned:
		return look{"minus", "off", "Unassigned"}
	default:
		return unknown(string(s))
	}
}

// ofOutcome returns the look of the outcome of a run, a resource or an event.
func ofOutcome(o model.Outcome) look {
	switch o {
	case "":
		return look{"clock", "wait", "In progress"}
	case model.OutcomeStable:
		return look{"check", "ok", "Stable"}
	case model.OutcomeChanged:
		return look{"delta", "changed", "Changed"}
	case model.OutcomeRefreshed:
		return look{"refresh", "changed", "Refreshed"}
	case model.OutcomeFailed:
		return look{"cross", "bad", "Failed"}
	case model.OutcomeSkipped:
		return look{"minus", "off", "Skipped"}
	case model.OutcomeNoop:
		return look{"eye", "changed", "Would change"}
	case model.OutcomeUnmet:
		return look{"unlink", "bad", "Requirement not met"}
	case model.OutcomeRefused:
		return look{"ban", "rejected", "Rejected"}
	case model.OutcomeNotRun:
		return look{"clock", "wait", "Not run"}
	}

	return ofEvent(string(o))
}

// ofEvent returns the look of what else an event says: of a node, or of a health check.
func ofEvent(word string) look {
	switch word {
	case string(model.NodeStarted):
		return look{"play", "ok", "Started"}
	case string(model.NodeStopped):
		return look{"stop", "off", "Stopped"}
	case string(model.NodeDropped):
		return look{"warning", "bad", "Reports dropped"}
	case string(model.NodeUnassigned):
		return look{"minus", "off", "Unassigned"}
	case string(model.NodeFlapping):
		return look{"wave", "wait", "Flapping"}
	case string(model.NodeDuplicate):
		return look{"warning", "bad", "Duplicate"}
	case string(model.HealthOK):
		return look{"check", "ok", "OK"}
	case string(model.HealthWarning):
		return look{"warning", "wait", "Warning"}
	case string(model.HealthCritical):
		return look{"cross", "bad", "Critical"}
	case string(model.HealthUnknown):
		return look{"question", "gone", "Unknown"}
	default:
		return look{"dot", "off", texts.Row(word)}
	}
}

// ofRequest returns the look of the state of a request on a node.
func ofRequest(s ask.State) look {
	switch s {
	case ask.StateDone:
		return look{"check", "ok", "Done"}
	case ask.StateFailed:
		return look{"cross", "bad", "Failed"}
	case ask.StateExpired:
		return look{"clock", "bad", "Expired"}
	case ask.StateRunning:
		return look{"play", "changed", "Running"}
	case ask.StateAccepted:
		return look{"clock", "changed", "Accepted"}
	case ask.StateUnreachable:
		return look{"unlink", "gone", "Unreachable"}
	case ask.StatePending:
		return look{"clock", "wait", "No answer yet"}
	default:
		return unknown(string(s))
	}
}

// ofAction returns the look of an action as a whole.
func ofAction(a ask.Action) look {
	switch {
	case a.Ended.IsZero():
		return look{"clock", "changed", "In progress"}
	case a.OK():
		return look{"check", "ok", "Done"}
	case a.CancelledBy != "":
		return look{"ban", "wait", "Cancelled"}
	case a.Error != "":
		return look{"cross", "bad", "Failed"}
	case slices.ContainsFunc(a.States, func(s ask.StateCount) bool { return s.State == ask.StateDone }):
		return look{"warning", "wait", "Not on all nodes"}
	case len(a.States) == 1 && a.States[0].State == ask.StateFailed:
		return look{"cross", "bad", "Failed"}
	default:
		return look{"warning", "wait", "On no node"}
	}
}

// ofPlan returns the look of what a plan comes to.
func ofPlan(o ask.Outcome) look {
	switch o {
	case ask.WouldFail:
		return look{"cross", "bad", "Would fail"}
	case ask.NotKnown:
		return look{"question", "gone", "Not known"}
	case ask.WouldChange:
		return look{"delta", "changed", "Would change"}
	case ask.Inactive:
		return look{"minus", "off", "Would not run"}
	case ask.NoChange:
		return look{"check", "ok", "No change"}
	default:
		return unknown(string(o))
	}
}

// ofChange returns the look of what operators wrote about a node or a group.
func ofChange(k view.ChangeKind) look {
	switch k {
	case view.ChangeRefused:
		return look{"ban", "rejected", "Not used"}
	case view.ChangeResumed:
		return look{"play", "ok", "Resumed"}
	case view.ChangeRemoved:
		return look{"minus", "off", "Removed"}
	case view.ChangeAssigned:
		return look{"delta", "changed", "Assigned"}
	case view.ChangePaused:
		return look{"pause", "off", "Paused"}
	case view.ChangeWritten:
		return look{"delta", "changed", "Written"}
	default:
		return unknown(string(k))
	}
}

// causeOf returns why something ran, in words.
func causeOf(c model.Cause) string {
	switch c {
	case model.CauseManifest:
		return "new revision"
	case model.CauseDrift:
		return "drift"
	case model.CauseSchedule:
		return "schedule"
	case model.CauseEnsure:
		return "request"
	case model.CauseRequest:
		return "run now"
	case model.CauseHealth:
		return "health check"
	case model.CauseCommand:
		return "command line"
	default:
		return texts.Row(string(c))
	}
}

// whyRan returns why a run began, in words: one that tries again what failed is that, whatever it was for.
func whyRan(c model.Cause, retry bool) string {
	if retry {
		return "retry"
	}

	return causeOf(c)
}

// share is a part of a bar.
type share struct {
	look
	count int
}

// ofTally returns the parts of the bar of a manifest.
func ofTally(t fleet.Tally) []share {
	var out []share
	for _, c := range countsOf(t) {
		out = append(out, share{ofStatus(c.status), c.count})
	}

	return out
}

// statusCount is a status with the number of nodes that have it.
type statusCount struct {
	status fleet.Status
	count  int
}

// countsOf returns the statuses of a tally that nodes have, in the order in which they are shown.
func countsOf(t fleet.Tally) []statusCount {
	var out []statusCount
	for _, c := range []statusCount{
		{fleet.StatusFailed, t.Failed}, {fleet.StatusRejected, t.Rejected}, {fleet.StatusPending, t.Pending},
		{fleet.StatusUnreachable, t.Unreachable}, {fleet.StatusUnreadable, t.Unreadable}, {fleet.StatusUpToDate, t.UpToDate},
	} {
		if c.count > 0 {
			out = append(out, c)
		}
	}

	return out
}
