package web

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/page"
	"github.com/musterfleet/muster/model"
)

// nodeQuery returns the query of the URL of a page of nodes.
func nodeQuery(r *http.Request) view.NodeQuery {
	q := r.URL.Query()

	return view.NodeQuery{
		On: strings.TrimSpace(q.Get("on")), Search: searchOf(r), State: fleet.Status(q.Get("state")), Sort: cmp.Or(q.Get("sort"), page.WorstFirst),
		Descending: q.Get("desc") == "1", Offset: offsetOf(r), Limit: page.PageSize,
	}
}

// manifestQuery returns the query of the URL of a page of a manifest.
func manifestQuery(r *http.Request) view.ManifestQuery {
	return view.ManifestQuery{Name: r.PathValue("name"), Status: fleet.Status(r.URL.Query().Get("status")), Offset: offsetOf(r), Limit: page.PageSize}
}

// eventQuery returns the query of the URL of a page of events.
func eventQuery(r *http.Request) view.EventQuery {
	q := r.URL.Query()
	// Ignore an invalid number and show the newest events.
	before, _ := strconv.ParseUint(q.Get("before"), 10, 64)

	return view.EventQuery{
		Node: strings.TrimSpace(q.Get("node")), Kind: q.Get("kind"), Manifest: strings.TrimSpace(q.Get("manifest")), RunID: q.Get("run"),
		Outcome: model.OutcomeNamed(q.Get("outcome")), Cause: model.Cause(q.Get("cause")), Search: searchOf(r), Before: before,
		Since: timeOf(q.Get("since")), Until: timeOf(q.Get("until")),
	}
}

// timesOf returns the time range of the URL of a page.
func timesOf(r *http.Request) page.Times {
	q := r.URL.Query()

	return page.Times{Since: timeOf(q.Get("since")), Until: timeOf(q.Get("until"))}
}

// timeOf parses a time in RFC 3339, or without a zone in UTC. It returns zero for any other text.
func timeOf(text string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}

	return time.Time{}
}

// maxOffset is beyond the end of every list.
const maxOffset = 1 << 30

// offsetOf returns the offset of a page in a list, 0 for an invalid number.
func offsetOf(r *http.Request) int {
	n, err := strconv.Atoi(r.URL.Query().Get("offset"))
	if err != nil {
		return 0
	}

	return min(max(n, 0), maxOffset)
}
