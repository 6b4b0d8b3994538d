package web

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/page"
	"github.com/musterfleet/muster/fleet/web/page/texts"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// registered returns the registrations that have a text, by service and address.
func registered(all []registration.Registration, search string) []registration.Registration {
	search = strings.ToLower(search)
	out := slices.DeleteFunc(slices.Clone(all), func(r registration.Registration) bool {
		return !strings.Contains(strings.ToLower(strings.Join([]string{r.Service, r.Cluster, r.ProtocolName, r.Address, r.Node, strconv.Itoa(r.Port)}, " ")), search)
	})
	slices.SortFunc(out, func(a, b registration.Registration) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
	})

	return out
}

// manifestsOf returns a page of the manifests whose names have a text, in their order.
func manifestsOf(all []view.ManifestRow, p view.Progress, search string, from int) page.ManifestsData {
	matching := slices.DeleteFunc(slices.Clone(all), func(m view.ManifestRow) bool {
		return !strings.Contains(strings.ToLower(m.Name), strings.ToLower(search))
	})

	return page.ManifestsData{Progress: p, Search: search, Offset: from, Rows: matching[min(from, len(matching)):min(from+page.PageSize, len(matching))], Matching: len(matching)}
}

// auditOf returns a page of the revisions of assignments that have a text; more is that there are others.
func auditOf(all []model.Entry, more bool, search string, from int) page.AuditData {
	found := view.AssignmentChanges(all, search)
	from = min(from, len(found))

	return page.AuditData{Search: search, Offset: from, Rows: found[from:min(from+page.PageSize, len(found))], Matching: len(found), More: more}
}

// within returns the revisions that were stored in a time range.
func within(all []model.Entry, times page.Times) []model.Entry {
	return slices.DeleteFunc(slices.Clone(all), func(e model.Entry) bool {
		return !times.Since.IsZero() && e.Time.Before(times.Since) || !times.Until.IsZero() && !e.Time.Before(times.Until)
	})
}

// termsOf returns the terms of what is assigned, by revision.
func termsOf(all []view.ManifestRow) map[uint64]*model.Terms {
	out := map[uint64]*model.Terms{}
	for _, m := range all {
		for _, k := range m.Keys {
			out[k.Revision] = k.Terms
		}
	}

	return out
}

// maxRevision is how many bytes of a revision are compared.
const maxRevision = 256 << 10

// historyOf returns revisions, which are given with the oldest first, with the newest first.
func historyOf(entries []model.Entry) []page.Revision {
	var out []page.Revision
	before := ""
	for i, e := range entries {
		text, long := "", len(e.Value) > maxRevision
		if !e.Deleted && !long {
			text = assign.Readable(e.Key, e.Value)
		}
		r := page.Revision{Entry: e}
		switch {
		case long || i > 0 && len(entries[i-1].Value) > maxRevision:
			r.What = "Too long to be compared here: muster fleet show " + e.Key + " --diff --revision " + strconv.FormatUint(e.Revision, 10)
		case i == 0:
			r.What, r.Lines = "The oldest revision that is kept", split(text)
		default:
			r.What, r.Lines = "Changes to the revision before", split(udiff.Unified("revision "+texts.Revision(entries[i-1].Revision), "revision "+texts.Revision(e.Revision), before, text))
			if len(r.Lines) == 0 {
				r.What = "The same as the revision before"
			}
		}
		before = text
		out = append(out, r)
	}
	slices.Reverse(out)

	return out
}

func split(text string) []string {
	var out []string
	for l := range strings.Lines(text) {
		out = append(out, strings.TrimRight(l, "\r\n"))
	}

	return out
}
