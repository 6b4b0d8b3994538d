package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// revision is a revision with its signature.
type revision struct {
	assign.Revision
	Signed *assign.Signature `json:"signed,omitempty"`
}

// ofManifestDocument is the JSON document of a manifest's history.
type ofManifestDocument struct {
	Manifest  string     `json:"manifest"`
	Revisions []revision `json:"revisions"`
	// Before is the number of earlier revisions.
	Before     int      `json:"before,omitempty"`
	Incomplete []string `json:"incomplete,omitempty"`
}

func (c *historyCommand) ofManifest(ctx context.Context, store *Store) error {
	doc := ofManifestDocument{Manifest: c.manifest, Revisions: []revision{}}
	keys, err := store.KeysOf(ctx, c.manifest)
	if err != nil {
		return err
	}
	if len(keys) == 0 && model.IsControlKey(c.manifest) {
		if found, err := c.ofControl(ctx, store); found || err != nil {
			return err
		}
	}
	if len(keys) == 0 {
		return store.NotAssigned(ctx, c.manifest)
	}
	var all []assign.Revision
	signed := map[uint64]*assign.Signature{}
	counts := map[string]int{}
	var changes assign.Revisions
	for _, key := range keys {
		entries, err := store.History(ctx, key)
		if err != nil {
			return err
		}
		counts[key] = len(entries)
		for _, e := range entries {
			signed[e.Revision] = assign.SignatureOf(ctx, c.Flags.Prefix, e)
			all = append(all, changes.Add(ctx, e))
		}
	}
	slices.SortFunc(all, func(a, b assign.Revision) int { return cmp.Compare(a.Revision, b.Revision) })
	timeOf := func(r assign.Revision) time.Time { return r.Time }
	all, doc.Before = assign.Since(selectEvents(c, all, timeOf, func(r assign.Revision) string { return r.By }), timeOf, c.from, c.limit)
	doc.Incomplete = full(counts)
	if len(all) > 0 {
		missing, err := c.rollout(ctx, store, all)
		if err != nil {
			return err
		}
		doc.Incomplete = append(doc.Incomplete, missing...)
	}
	for _, r := range all {
		doc.Revisions = append(doc.Revisions, revision{r, signed[r.Revision]})
	}

	return c.Print.Result(c.Format, doc, func() {
		c.Print.Table([]string{"TIME", "KEY", "REVISION", "EVENT", "LINES", "RAN ON", "FAILED", "REJECTED", "NOW", "ROLLOUT", "BY", "SIGNED BY", "DETAILS"}, print.Rows(doc.Revisions, revision.row), "no revisions since then")
		c.remarks(doc.Before, doc.Incomplete)
	})
}

// rollout counts the nodes that ran each revision, from the reports since the first revision. It returns
// remarks about missing reports.
func (c *historyCommand) rollout(ctx context.Context, store *Store, all []assign.Revision) ([]string, error) {
	stream := kvstore.NewReports(store.KV)
	bounds, err := stream.Bounds(ctx)
	if err != nil {
		return nil, err
	}
	line := c.Print.Progress()
	defer line.Clear()
	count, read := assign.NewRollout(all), 0
	for m, err := range stream.Messages(ctx, model.ReportRange{Kind: model.KindRun, Since: all[0].Time}) {
		if err != nil {
			return nil, err
		}
		for _, r := range m.Reports {
			count.Add(r)
		}
		if read++; read%500 == 0 {
			line.Show("read %d reports of runs", read)
		}
	}
	states, err := store.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	missing := begins(bounds, all[0].Time)
	if full := count.Finish(states, bounds.PerSubject); full > 0 {
		missing = append(missing, fmt.Sprintf("only the last %d reports per node, kind and outcome are retained; earlier runs of %s may be missing", bounds.PerSubject, print.Count(full, "node")))
	}

	return missing, nil
}

// row formats a revision as a table row.
func (r revision) row() []string {
	count := func(n int) string {
		if r.Deleted {
			return "-"
		}
		return strconv.Itoa(n)
	}
	took := "-"
	if r.Ran.Nodes > 0 {
		// The clock of a node may differ from the clock of the server.
		took = "after " + print.Age(r.Time, model.LaterTime(r.Ran.Last, r.Time))
	}
	lines := r.Lines.String()
	if r.Unchanged {
		lines = "-"
	}
	details := strings.TrimPrefix(print.ShortDigest(r.Digest)+", "+r.Describe(), ", ")
	if r.Deleted {
		details = ""
	}

	return []string{
		print.Time(r.Time), r.Key, strconv.FormatUint(r.Revision.Revision, 10), string(r.Change()), lines, count(r.Ran.Nodes), count(r.Ran.Failed), count(r.Ran.Rejected), count(r.Ran.Now),
		took, cmp.Or(print.OneLine(r.By), "-"), r.Signed.Short(), strings.TrimSuffix(details, ", "),
	}
}

// maxFamilies is the maximum number of groups in the history of a node: a node may claim many groups.
const maxFamilies = 256

// ofNodeDocument is the JSON document of a node's history.
type ofNodeDocument struct {
	Node   string             `json:"node"`
	Events []assign.NodeEvent `json:"events"`
	// Before is the number of earlier events.
	Before     int      `json:"before,omitempty"`
	Incomplete []string `json:"incomplete,omitempty"`
}

func (c *historyCommand) ofNode(ctx context.Context, store *Store) error {
	doc := ofNodeDocument{Node: c.node}
	n, err := kvstore.NewNodes(store.KV).State(ctx, c.node)
	known := !errors.Is(err, model.ErrNotFound)
	if err != nil && known && !errors.Is(err, kvstore.ErrInvalidState) {
		return err
	}
	families := model.Families(c.node, slices.DeleteFunc(slices.Clone(n.Groups), func(g string) bool { return model.CheckNode(c.node, []string{g}) != nil }))
	if len(families) > maxFamilies {
		doc.Incomplete = append(doc.Incomplete, fmt.Sprintf("only %[2]d of its %[1]d groups are searched", len(families)-2, maxFamilies-2))
		families = append(families[:maxFamilies-1], model.GroupFamily(model.GroupAll))
	}
	// Reports carry the time of the node. Reports with future times must not displace events from operators.
	latest := assign.LatestEvents{Most: max(maxEvents, c.limit)}
	operators, err := assigned(ctx, store, families, &doc)
	if err != nil {
		return err
	}
	written, err := writtenEvents(ctx, store, families, &doc)
	if err == nil {
		err = c.reported(ctx, store, &latest, &doc)
	}
	if err != nil {
		return err
	}
	all := latest.Sorted(append(operators, written...)...)
	if latest.Dropped > 0 {
		doc.Incomplete = append(doc.Incomplete, fmt.Sprintf("only the latest %d reported events are shown", latest.Most))
	}
	if !known {
		if !slices.ContainsFunc(all, func(e assign.NodeEvent) bool { return !isOfGroups(e) }) {
			return store.NoSuchNode(ctx, c.node)
		}
		c.Log.Warn("node is no longer known; assignments of its groups are missing", "node", c.node)
	}
	if n.Clock.Apparent() {
		doc.Incomplete = append(doc.Incomplete, "its clock is "+n.Clock.String()+"; its reports carry the time of that clock")
	}
	timeOf := func(e assign.NodeEvent) time.Time { return cmp.Or(e.Until, e.At) }
	doc.Events, doc.Before = assign.Since(selectEvents(c, all, timeOf, func(e assign.NodeEvent) string { return e.By }), timeOf, c.from, c.limit)
	doc.Before += latest.Dropped
	if doc.Events == nil {
		doc.Events = []assign.NodeEvent{}
	}

	return c.Print.Result(c.Format, doc, func() {
		c.Print.Table([]string{"TIME", "EVENT", "ABOUT", "OUTCOME", "CAUSE", "DETAILS"}, print.Rows(doc.Events, row), "no events")
		c.remarks(doc.Before, doc.Incomplete)
	})
}

// isOfGroups reports whether an event is about a key of a group; such an event does not prove that the node
// existed.
func isOfGroups(e assign.NodeEvent) bool {
	return strings.HasPrefix(e.About, model.GroupFamily("")) && e.RunID == ""
}

// assigned returns the assignments of a node and its groups.
func assigned(ctx context.Context, store *Store, families []string, doc *ofNodeDocument) (events []assign.NodeEvent, err error) {
	var revisions assign.Revisions
	counts := map[string]int{}
	for e, err := range store.Revisions(ctx, families...) {
		if err != nil {
			return nil, err
		}
		counts[e.Key]++
		events = append(events, assign.OfRevision(revisions.Add(ctx, e)))
	}
	doc.Incomplete = append(doc.Incomplete, full(counts)...)

	return events, nil
}

// writtenEvents returns the pauses, labels and groups that operators set for a node and its groups.
func writtenEvents(ctx context.Context, store *Store, families []string, doc *ofNodeDocument) (events []assign.NodeEvent, err error) {
	entries, err := kvstore.NewControl(store.KV).History(ctx, families...)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, entry := range entries {
		if e, ok := assign.OfControl(entry); ok {
			counts[entry.Key]++
			events = append(events, e)
		}
	}
	doc.Incomplete = append(doc.Incomplete, full(counts)...)

	return events, nil
}

// full returns a remark about the keys with a full history.
func full(counts map[string]int) []string {
	var names []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		if counts[key] >= kvstore.HistorySize {
			names = append(names, key)
		}
	}
	if len(names) == 0 {
		return nil
	}

	return []string{fmt.Sprintf("only the last %[2]d revisions of %[1]s are retained; earlier ones may be missing", print.Some(names, "see muster fleet ls"), kvstore.HistorySize)}
}

// reported adds the events that a node reported, each report once.
func (c *historyCommand) reported(ctx context.Context, store *Store, latest *assign.LatestEvents, doc *ofNodeDocument) error {
	stream := kvstore.NewReports(store.KV)
	bounds, err := stream.Bounds(ctx)
	if err != nil {
		return err
	}
	line := c.Print.Progress()
	defer line.Clear()
	read, invalid := 0, 0
	known := view.NewRepeats()
	var shares view.Shares
	for m, err := range stream.Messages(ctx, model.ReportRange{Node: c.node, Since: c.from}) {
		if err != nil {
			return err
		}
		if m.Invalid != nil {
			invalid++
		}
		if read++; read%500 == 0 {
			line.Show("read %d reports", read)
		}
		shares.Add(m)
		for _, r := range m.Reports {
			if known.SeenBefore(r.Node, r.ID) {
				continue
			}
			if e, ok := assign.OfReport(r); ok {
				e.Details = print.Cut(print.OneLine(e.Details), maxDetails)
				latest.Add(e)
			}
		}
	}
	doc.Incomplete = append(doc.Incomplete, slices.Concat(begins(bounds, c.from), missingReports(&shares, bounds))...)
	if invalid > 0 {
		doc.Incomplete = append(doc.Incomplete, fmt.Sprintf("%s cannot be read", print.Count(invalid, "stored report")))
	}

	return nil
}

// maxEvents is the minimum number of events held in memory for a node; a larger --limit raises it. A node may
// report any number of events.
const maxEvents = 50_000

// maxDetails is the maximum length of the details, in characters: a node may send long texts.
const maxDetails = 1000

// begins returns a remark about the start of the report stream, if reports after from were already dropped.
func begins(b model.ReportBounds, from time.Time) []string {
	if !b.Dropped || b.Oldest.IsZero() || !from.Before(b.Oldest) {
		return nil
	}

	return []string{"the stream of reports begins at " + print.Time(b.Oldest)}
}

// row formats an event as a table row.
func row(e assign.NodeEvent) []string {
	about, outcome, details := e.About, string(e.Outcome), e.Details
	if e.Revision > 0 && e.About != "" {
		about = fmt.Sprintf("%s@%d", e.About, e.Revision)
	}
	if e.Outcome == model.OutcomeRefused {
		outcome = string(fleet.StatusRejected)
	}
	cause := string(e.Cause)
	if e.Retry {
		cause = "retry"
	}
	if e.By != "" && e.Kind != assign.KindPaused { // the details of a pause contain the author
		details = strings.TrimPrefix(details+", by "+e.By, ", ")
	}
	if e.Again > 0 {
		details = strings.TrimPrefix(fmt.Sprintf("%s, and %s until %s", details, print.Count(e.Again, "stable run"), print.Time(e.Until)), ", ")
	}

	return []string{print.Time(e.At), string(e.Kind), cmp.Or(about, "-"), cmp.Or(outcome, "-"), cmp.Or(cause, "-"), print.OneLine(details)}
}
