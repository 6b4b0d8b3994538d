package page

import (
	"cmp"
	"strings"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/page/texts"
	"github.com/musterfleet/muster/model"
)

// maxStatuses is how many assignments of a node are shown.
const maxStatuses = 200

// moreStatuses returns the number of manifests of a node that its page does not list, zero or less for none.
func moreStatuses(d view.NodeDetail) int {
	return max(len(d.Statuses)-maxStatuses, 0) + d.OmittedManifests
}

// nodeReason returns why a node is in its state, and what it says besides.
func nodeReason(d view.NodeDetail) string {
	reason, message := stateReason(d), texts.Row(d.Message)
	if d.Unreadable != "" || message == "" || strings.Contains(reason, message) {
		return reason
	}

	return strings.TrimPrefix(reason+"; "+message, "; ")
}

// stateReason returns why a node is in its state, empty where nothing says so.
func stateReason(d view.NodeDetail) string {
	if d.Unreadable != "" {
		return texts.Row(d.Unreadable)
	}
	if d.State == fleet.StatusPaused {
		return texts.Row(d.Paused.Details())
	}
	for _, s := range d.Statuses {
		if s.Status == d.State && s.Status != fleet.StatusUpToDate {
			if strings.HasPrefix(s.Reason, s.Key+":") {
				return assignmentReason(s) // it names the manifest
			}
			return texts.Row(nameOf(s.Key)) + ": " + assignmentReason(s)
		}
	}

	return ""
}

// assignmentURL returns the page of the manifest of an assignment, or the history of the key if it is not assigned.
func assignmentURL(s view.Assignment) templ.SafeURL {
	if s.Status == fleet.StatusUnassigned {
		return AuditURL(s.Key)
	}

	return manifestURL(nameOf(s.Key))
}

// assignmentReason returns why an assignment is not in force; a pending one always has a reason.
func assignmentReason(s view.Assignment) string {
	if s.Status == fleet.StatusPending {
		return reasonOf(messageFirst(s.Reason), "it reported no reason")
	}

	return texts.Row(messageFirst(s.Reason))
}

func silentAfter(d view.NodeDetail) string {
	if d.SilentAfter == 0 {
		return "never"
	}

	return texts.Duration(d.SilentAfter.Std())
}

func clockText(d view.NodeDetail) string {
	if d.Clock == (model.ClockOffset{}) {
		return ""
	}
	if d.Clock.Apparent() {
		return d.Clock.String()
	}

	return "agrees with the NATS server's"
}

// healthOf returns the statuses of health checks that there are.
func healthOf(h model.HealthCounts) []share {
	var out []share
	for _, s := range []share{
		{ofEvent(string(model.HealthCritical)), h.Critical}, {ofEvent(string(model.HealthWarning)), h.Warning},
		{ofEvent(string(model.HealthUnknown)), h.Unknown}, {ofEvent(string(model.HealthOK)), h.OK},
	} {
		if s.count > 0 {
			out = append(out, s)
		}
	}

	return out
}

// ManifestData is what the page of a manifest shows.
type ManifestData struct {
	Query  view.ManifestQuery
	Detail view.ManifestDetail
	Tab    Tab
	Acts
}

// Tab is a part of the page of a manifest.
type Tab string

// The tabs.
const (
	TabNodes       Tab = ""
	TabErrors      Tab = "errors"
	TabAssignments Tab = "assignments"
	TabRuns        Tab = "runs"
)

// tab is a link to a part of a page. A negative count is not shown.
type tab struct {
	tab   Tab
	word  string
	count int
	url   templ.SafeURL
}

// tabs returns the parts of the page.
func (d ManifestData) tabs() []tab {
	out := []tab{{tab: TabNodes, word: "Nodes", count: d.Detail.Targets}, {tab: TabErrors, word: "Errors", count: len(d.Detail.Failing)}, {tab: TabAssignments, word: "Assignments", count: len(d.Detail.Keys)}, {tab: TabRuns, word: "Runs", count: -1}}
	for i, t := range out {
		out[i].url = at(values("tab", string(t.tab)), "manifests", d.Query.Name)
	}

	return out
}

// targetOf returns whom a key is for, in words.
func targetOf(key string) string {
	t, _, err := fleet.ParseKey(key)
	if err != nil {
		return ""
	}

	return strings.Replace(t.String(), ".", " ", 1)
}

// refs returns references in a line.
func refs(all []model.Ref) string {
	var out []string
	for _, r := range all[:min(len(all), 20)] {
		out = append(out, r.String())
	}

	return texts.Row(strings.Join(out, ", "))
}

// placeOfStep returns where a resource is declared, and what it is part of.
func placeOfStep(t model.Transaction) string {
	text := cmp.Or(texts.Row(t.Source.String()), "")
	if t.Within != (model.Ref{}) {
		text += ", within " + texts.Row(t.Within.String())
	}

	return text
}

func (d ManifestData) statusURL(s fleet.Status) templ.SafeURL {
	return manifestStatusURL(d.Query.Name, s)
}

func (d ManifestData) pageURL(from int) templ.SafeURL {
	return at(values("status", string(d.Query.Status), "offset", offset(from)), "manifests", d.Query.Name)
}
