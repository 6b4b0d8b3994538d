package page

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/page/texts"
)

// PageSize is how many rows a page of a list has.
const PageSize = 50

// maxListed is how many lines a list has that is part of another page.
const maxListed = 10

// NodesData is what the page of nodes shows.
type NodesData struct {
	Query view.NodeQuery
	Page  view.NodePage
	// Err is what is wrong with the expression, nil for nothing.
	Err *targets.Error
	Acts
}

// sortable are the columns of nodes, by which they can be sorted.
type sortable struct{ key, title, class string }

func nodeColumns() []sortable {
	return []sortable{{"state", "State", ""}, {"name", "Node", ""}, {"", "Manifests", "col-m"}, {"", "Why", "col-m"}, {"", "Groups and labels", "col-l"}, {"since", "For", "right"}, {"heard", "Last seen", "col-l right"}, {"version", "Version", "col-l"}}
}

// sortURL returns the page sorted by a column, and the other way round where it is already.
func (d NodesData) sortURL(key string) templ.SafeURL {
	q := d.Query
	q.Descending = d.sorted(key) && !q.Descending
	q.Sort, q.Offset = key, 0

	return NodesURL(q)
}

func (d NodesData) sorted(key string) bool { return cmp.Or(d.Query.Sort, WorstFirst) == key }

// WorstFirst is the default order of nodes.
const WorstFirst = "state"

// order returns how a column is sorted, as aria-sort has it; empty where it is not.
func (d NodesData) order(key string) string {
	switch {
	case key == "" || !d.sorted(key):
		return ""
	case d.Query.Descending:
		return "descending"
	default:
		return "ascending"
	}
}

func (d NodesData) stateURL(s fleet.Status) templ.SafeURL {
	q := d.Query
	q.State, q.Offset = s, 0

	return NodesURL(q)
}

func (d NodesData) pageURL(offset int) templ.SafeURL {
	q := d.Query
	q.Offset = offset

	return NodesURL(q)
}

// states returns the filters by state, with one that is chosen although no node has it.
func (d NodesData) states() (counts []statusCount, total int) {
	chosen := d.Query.State == ""
	for _, s := range d.Page.States {
		counts = append(counts, statusCount{s.State, s.Nodes})
		total += s.Nodes
		chosen = chosen || s.State == d.Query.State
	}
	if !chosen {
		counts = append(counts, statusCount{d.Query.State, 0})
	}

	return counts, total
}

// filtered reports whether the query leaves nodes out.
func (d NodesData) filtered() bool {
	return d.Query.On != "" || d.Query.Search != "" || d.Query.State != ""
}

// marked returns the line of an expression that is wrong, and below it a mark.
func marked(e *targets.Error) string {
	if e.Line < 1 || e.Column < 1 {
		return ""
	}
	lines := strings.Split(e.Expression, "\n")
	if e.Line > len(lines) || e.Column > 200 {
		return ""
	}

	return texts.Cut(lines[e.Line-1], texts.MaxRow) + "\n" + strings.Repeat(" ", e.Column-1) + "^"
}

// labelsText returns the first groups and labels of a node as the title of a cell.
func labelsText(r view.NodeRow) string {
	return texts.Row(strings.Join(append(slices.Clone(r.Groups[:min(len(r.Groups), maxListed)]), pairs(r.Labels, maxListed)...), " "))
}

// tagsWidth is the number of characters that fit into a cell with tags. Each tag needs tagMargin more.
const tagsWidth, tagMargin = 14, 2

// fitting returns the groups and labels of a node that fit into a cell, at least one of them. The last tag counts the
// others, such as "+3".
func fitting(groups []string, labels map[string]string) (shownGroups, shownLabels []string) {
	pairs := pairs(labels, len(labels))
	all, left, count := append(slices.Clone(groups), pairs...), tagsWidth, 0
	for i, text := range all {
		left -= utf8.RuneCountInString(text) + tagMargin
		if i > 0 && left < 0 {
			break
		}
		count++
	}
	if more := len(all) - count; more > 0 {
		pairs = append(pairs[:max(count-len(groups), 0)], "+"+texts.Number(more))
	}

	return groups[:min(count, len(groups))], pairs
}

// hostOf returns the host name of a node, empty if the node has the same name.
func hostOf(r view.NodeRow) string {
	if strings.EqualFold(r.Host, r.Node) {
		return ""
	}

	return texts.Row(r.Host)
}

// outboxText returns the number of waiting reports, empty for zero.
func outboxText(r view.NodeRow) string {
	if r.Outbox == 0 {
		return ""
	}

	return texts.Count(r.Outbox, "report") + " wait"
}

// reason returns why a node is not in order.
func reason(r view.NodeRow) string {
	if r.State == fleet.StatusPending {
		return reasonOf(messageFirst(r.Reason), "it reported no reason")
	}

	return texts.Row(messageFirst(r.Reason))
}

// rowsOf returns manifests as the rows of a list, the first of them.
func rowsOf(all []view.Manifest) []view.ManifestRow {
	var out []view.ManifestRow
	for _, m := range all[:min(len(all), maxListed)] {
		out = append(out, view.ManifestRow{Manifest: m})
	}

	return out
}
