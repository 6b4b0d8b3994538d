package assign

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// Kind is the kind of an event.
type Kind string

// Kinds of events: of assignments, reports and control documents.
const (
	KindAssigned Kind = "assigned"
	KindRemoved  Kind = "removed"

	KindRun     Kind = "run"
	KindDrift   Kind = "drift"
	KindHealth  Kind = "health"
	KindRequest Kind = "request"
	KindAgent   Kind = "agent"

	KindPaused  Kind = "paused"
	KindResumed Kind = "resumed"
	KindLabels  Kind = "labels"
	KindGroups  Kind = "groups"
)

// NodeEvent is one entry in the history of a node.
type NodeEvent struct {
	At   time.Time `json:"at"`
	Kind Kind      `json:"kind"`
	// About is the key or the resource, empty for the node itself.
	About    string        `json:"about,omitempty"`
	Revision uint64        `json:"revision,omitempty"`
	Outcome  model.Outcome `json:"outcome,omitempty"`
	Cause    model.Cause   `json:"cause,omitempty"`
	// Retry means that it repeats a failed run.
	Retry bool `json:"retry,omitempty"`
	// By is the unverified author of a revision or sender of a request.
	By      string `json:"by,omitempty"`
	Details string `json:"details,omitempty"`
	RunID   string `json:"run_id,omitempty"`
	// Again is the number of following stable runs, Until the time of the last one.
	Again int       `json:"again,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

// OfRevision returns the event of a revision.
func OfRevision(r Revision) NodeEvent {
	e := NodeEvent{At: r.Time, Kind: r.Change(), About: r.Key, Revision: r.Revision, By: r.By, Details: r.Describe()}
	if r.Lines != nil && *r.Lines != (Lines{}) {
		e.Details = strings.TrimPrefix(e.Details+", lines "+r.Lines.String(), ", ")
	}

	return e
}

// OfControl returns the event of a revision of a control key, and false for other keys.
func OfControl(e model.Entry) (NodeEvent, bool) {
	_, name, _ := model.SplitKey(e.Key)
	out := NodeEvent{At: e.Time, About: e.Key, Revision: e.Revision, By: e.By}
	switch {
	case name == model.ControlPause && e.Deleted:
		out.Kind = KindResumed
		return out, true
	case name == model.ControlPause:
		out.Kind = KindPaused
	case name == model.ControlLabels:
		out.Kind = KindLabels
	case name == model.ControlGroups:
		out.Kind = KindGroups
	default:
		return out, false
	}
	if e.Deleted {
		out.Details = "removed"
		return out, true
	}
	details, err := view.DescribeControlValue(name, e.Value)
	if err != nil {
		details = "not valid: " + err.Error()
	}
	out.Details = details

	return out, true
}

// OfReport returns the event of a report. It returns false for a report that is a part of another one: a
// resource of a run, unless drift was repaired.
func OfReport(r model.Report) (NodeEvent, bool) {
	e := NodeEvent{At: r.Time, About: r.Manifest, Revision: r.Revision, Outcome: r.Outcome, Cause: r.Cause, RunID: r.RunID}
	subject, summary := view.DescribeReport(r)
	e.Details = summary
	switch r.Kind {
	case model.KindRun:
		e.Kind = KindRun
		var run struct {
			Retry bool `json:"retry"`
		}
		e.Retry = json.Unmarshal(r.Data, &run) == nil && run.Retry
	case model.KindTransaction:
		var t struct {
			Drift  *struct{} `json:"drift"`
			Failed bool      `json:"failed"`
		}
		if json.Unmarshal(r.Data, &t) != nil || t.Drift == nil || t.Failed {
			return e, false
		}
		e.Kind, e.About, e.Revision = KindDrift, subject, 0
	case model.KindHealth:
		e.Kind, e.About, e.Revision = KindHealth, subject, 0
	case model.KindEnsure:
		e.Kind, e.About, e.Revision, e.By = KindRequest, subject, 0, view.SenderOf(r)
	case model.KindNode:
		e.Kind = KindAgent
	default:
		return e, false
	}

	return e, true
}

// SortEvents returns events sorted by time. It merges consecutive stable runs of a manifest.
func SortEvents(all []NodeEvent) []NodeEvent {
	slices.SortStableFunc(all, func(a, b NodeEvent) int { return a.At.Compare(b.At) })
	var out []NodeEvent
	last := map[string]int{}
	for _, e := range all {
		if e.Kind == KindRun {
			if at, known := last[e.About]; known && e.isStable() && out[at].isStable() && out[at].Revision == e.Revision {
				out[at].Again += 1 + e.Again
				out[at].Until = cmp.Or(e.Until, e.At)
				continue
			}
			last[e.About] = len(out)
		}
		if e.Kind == KindAssigned || e.Kind == KindRemoved {
			delete(last, e.About)
		}
		out = append(out, e)
	}

	return out
}

func (e NodeEvent) isStable() bool { return e.Kind == KindRun && e.Outcome == model.OutcomeStable }

// LatestEvents stores the newest events of a node in bounded memory.
type LatestEvents struct {
	// Most is the number of retained events. At times twice as many are retained.
	Most int
	// Dropped is the number of dropped events.
	Dropped int
	kept    []NodeEvent
}

// Add adds an event. The order does not matter.
func (l *LatestEvents) Add(e NodeEvent) {
	if l.kept = append(l.kept, e); len(l.kept) >= 2*l.Most {
		l.drop()
	}
}

// Sorted returns the retained events together with others, sorted by sort. Retained events displace none of
// the others.
func (l *LatestEvents) Sorted(others ...NodeEvent) []NodeEvent {
	if len(l.kept) > l.Most {
		l.drop()
	}

	return SortEvents(slices.Concat(others, l.kept))
}

func (l *LatestEvents) drop() {
	l.kept = SortEvents(l.kept)
	if surplus := len(l.kept) - l.Most; surplus > 0 {
		l.Dropped += surplus
		l.kept = append([]NodeEvent(nil), l.kept[surplus:]...)
	}
}
