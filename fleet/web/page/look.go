package page

import (
	"cmp"
	"slices"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"

	"github.com/musterfleet/muster/model"
)

// look is the display of a status: an icon with a distinct shape, a tone and a word. Users need not see colors.
type look struct{ icon, tone, word string }

// lookOf returns the look of a word. Unknown words have a look, too.
func lookOf[K ~string](all map[K]look, word K) look {
	if l, known := all[word]; known {
		return l
	}

	return look{"question", "gone", Row(string(word))}
}

var statusLooks = map[fleet.Status]look{
	fleet.StatusOK:            {"check", "ok", "OK"},
	fleet.StatusUpToDate:      {"check", "ok", "Up to date"},
	fleet.StatusFailed:        {"cross", "bad", "Failed"},
	fleet.StatusRejected:      {"ban", "rejected", "Rejected"},
	fleet.StatusPending:       {"clock", "wait", "Pending"},
	fleet.StatusUnreachable:   {"unlink", "gone", "Unreachable"},
	fleet.StatusUnreadable:    {"question", "gone", "Unreadable"},
	fleet.StatusNoManifest:    {"minus", "off", "No manifest"},
	fleet.StatusStopped:       {"stop", "off", "Stopped"},
	fleet.StatusPaused:        {"pause", "off", "Paused"},
	fleet.StatusOverridden:    {"minus", "off", "Overridden"},
	fleet.StatusNotApplicable: {"minus", "off", "Not applicable"},
	fleet.StatusUnassigned:    {"minus", "off", "Unassigned"},
}

// ofStatus returns the look of a status of a node or an assignment.
func ofStatus(s fleet.Status) look { return lookOf(statusLooks, s) }

var outcomeLooks = map[model.Outcome]look{
	"":                     {"clock", "wait", "In progress"},
	model.OutcomeStable:    {"check", "ok", "Stable"},
	model.OutcomeChanged:   {"delta", "changed", "Changed"},
	model.OutcomeRefreshed: {"refresh", "changed", "Refreshed"},
	model.OutcomeFailed:    {"cross", "bad", "Failed"},
	model.OutcomeSkipped:   {"minus", "off", "Skipped"},
	model.OutcomeNoop:      {"eye", "changed", "Would change"},
	model.OutcomeUnmet:     {"unlink", "bad", "Requirement not met"},
	model.OutcomeRefused:   {"ban", "rejected", "Rejected"},
	model.OutcomeNotRun:    {"clock", "wait", "Not run"},
}

func ofOutcome(o model.Outcome) look {
	if l, known := outcomeLooks[o]; known {
		return l
	}

	return ofEvent(string(o))
}

var eventLooks = map[string]look{
	string(model.NodeStarted):    {"play", "ok", "Started"},
	string(model.NodeStopped):    {"stop", "off", "Stopped"},
	string(model.NodeDropped):    {"warning", "bad", "Reports dropped"},
	string(model.NodeUnassigned): {"minus", "off", "Unassigned"},
	string(model.NodeFlapping):   {"wave", "wait", "Flapping"},
	string(model.NodeDuplicate):  {"warning", "bad", "Duplicate"},
	string(model.HealthOK):       {"check", "ok", "OK"},
	string(model.HealthWarning):  {"warning", "wait", "Warning"},
	string(model.HealthCritical): {"cross", "bad", "Critical"},
	string(model.HealthUnknown):  {"question", "gone", "Unknown"},
}

// ofEvent returns the look of an event of a node or a health check.
func ofEvent(word string) look {
	if l, known := eventLooks[word]; known {
		return l
	}

	return look{"dot", "off", Row(word)}
}

var requestLooks = map[ask.State]look{
	ask.StateDone:        {"check", "ok", "Done"},
	ask.StateFailed:      {"cross", "bad", "Failed"},
	ask.StateExpired:     {"clock", "bad", "Expired"},
	ask.StateRunning:     {"play", "changed", "Running"},
	ask.StateAccepted:    {"clock", "changed", "Accepted"},
	ask.StateUnreachable: {"unlink", "gone", "Unreachable"},
	ask.StatePending:     {"clock", "wait", "No answer yet"},
}

func ofRequest(s ask.State) look { return lookOf(requestLooks, s) }

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

var planLooks = map[ask.Outcome]look{
	ask.WouldFail:   {"cross", "bad", "Would fail"},
	ask.NotKnown:    {"question", "gone", "Not known"},
	ask.WouldChange: {"delta", "changed", "Would change"},
	ask.Inactive:    {"minus", "off", "Would not run"},
	ask.NoChange:    {"check", "ok", "No change"},
}

var changeLooks = map[view.ChangeKind]look{
	view.ChangeRefused:  {"ban", "rejected", "Not used"},
	view.ChangeResumed:  {"play", "ok", "Resumed"},
	view.ChangeRemoved:  {"minus", "off", "Removed"},
	view.ChangeAssigned: {"delta", "changed", "Assigned"},
	view.ChangePaused:   {"pause", "off", "Paused"},
	view.ChangeWritten:  {"delta", "changed", "Written"},
}

var causeWords = map[model.Cause]string{
	model.CauseManifest: "new revision", model.CauseDrift: "drift", model.CauseSchedule: "schedule", model.CauseEnsure: "request",
	model.CauseRequest: "run now", model.CauseHealth: "health check", model.CauseCommand: "command line",
}

func causeOf(c model.Cause) string { return cmp.Or(causeWords[c], Row(string(c))) }

func whyRan(c model.Cause, retry bool) string {
	if retry {
		return "retry"
	}

	return causeOf(c)
}

type share struct {
	look
	count int
}

func ofTally(t fleet.Tally) []share {
	var out []share
	for _, c := range countsOf(t) {
		out = append(out, share{ofStatus(c.status), c.count})
	}

	return out
}

type statusCount struct {
	status fleet.Status
	count  int
}

// countsOf returns the statuses that nodes have, in display order.
func countsOf(t fleet.Tally) []statusCount {
	var out []statusCount
	for status, n := range t.Counts() {
		if n > 0 {
			out = append(out, statusCount{status, n})
		}
	}

	return out
}
