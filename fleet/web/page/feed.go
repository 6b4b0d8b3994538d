package page

import (
	"slices"
	"time"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// EventsData is what the page of events shows.
type EventsData struct {
	Query view.EventQuery
	Page  view.EventPage
}

// option is a choice of a filter.
type option struct{ value, word string }

// eventGroup is an event. If it is the end of a run, parts are the changes of the run.
type eventGroup struct {
	view.Event
	parts []view.Event
}

// grouped moves the changes of each run into the group of the run. A change without its run on the page has its
// own group.
func grouped(all []view.Event) []eventGroup {
	runs := map[[2]string]int{}
	var out []eventGroup
	for _, e := range all {
		if e.Kind == model.KindRun && e.RunID != "" {
			runs[[2]string{e.Node, e.RunID}] = len(out)
		}
		at, is := runs[[2]string{e.Node, e.RunID}]
		if is && e.Kind == model.KindTransaction {
			out[at].parts = append(out[at].parts, e)
			continue
		}
		out = append(out, eventGroup{Event: e})
	}

	return out
}

// fieldTime returns a time as the value of a datetime-local field, empty for zero.
func fieldTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}

	return at.UTC().Format("2006-01-02T15:04")
}

// isOther reports whether a filter holds that is not among the choices: it is shown all the same.
func isOther(current string, all []option) bool {
	return current != "" && !slices.ContainsFunc(all, func(o option) bool { return o.value == current })
}

func kinds() []option {
	return []option{{model.KindRun, "run"}, {model.KindTransaction, "resource"}, {model.KindHealth, "health check"}, {model.KindEnsure, "request"}, {model.KindNode, "agent"}}
}

func outcomes() []option {
	var out []option
	for _, o := range []model.Outcome{
		model.OutcomeStable, model.OutcomeChanged, model.OutcomeRefreshed, model.OutcomeFailed, model.OutcomeSkipped, model.OutcomeNoop,
		model.OutcomeUnmet, model.OutcomeRefused, model.OutcomeNotRun,
	} {
		out = append(out, option{string(o), ofOutcome(o).word})
	}

	return out
}

func causes() []option {
	var out []option
	for _, c := range []model.Cause{model.CauseManifest, model.CauseDrift, model.CauseSchedule, model.CauseEnsure, model.CauseRequest, model.CauseHealth, model.CauseCommand} {
		out = append(out, option{string(c), causeOf(c)})
	}

	return out
}

// paused reports whether the page shows the events before one, which no update changes.
func (d EventsData) paused() bool { return d.Query.Before > 0 }

// filtered reports whether the query leaves events out.
func (d EventsData) filtered() bool {
	q := d.Query
	q.Before, q.Limit = 0, 0

	return q != view.EventQuery{}
}

// liveURL returns the page that follows the events.
func (d EventsData) liveURL() templ.SafeURL {
	q := d.Query
	q.Before = 0

	return EventsURL(q)
}

// pauseURL returns the page that stays as it is.
func (d EventsData) pauseURL() templ.SafeURL {
	q := d.Query
	q.Before = d.Page.Events[0].Seq + 1

	return EventsURL(q)
}

// olderURL returns the page with the events before those that are shown.
func (d EventsData) olderURL() templ.SafeURL {
	q := d.Query
	q.Before = d.Page.Events[len(d.Page.Events)-1].Seq

	return EventsURL(q)
}
