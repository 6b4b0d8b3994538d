package fleetcmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// revision is a revision with its signature.
type revision struct {
	assign.Revision
	Signed *Signature `json:"signed,omitempty"`
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
	signed := map[uint64]*Signature{}
	counts := map[string]int{}
	var changes assign.Revisions
	for _, key := range keys {
		entries, err := store.History(ctx, key)
		if err != nil {
			return err
		}
		counts[key] = len(entries)
		for _, e := range entries {
			signed[e.Revision] = SignatureOf(ctx, c.Flags.Prefix, e)
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
		rows := make([][]string, len(doc.Revisions))
		for i, r := range doc.Revisions {
			rows[i] = r.row()
		}
		c.Print.Table([]string{"TIME", "KEY", "REVISION", "EVENT", "LINES", "RAN ON", "FAILED", "REJECTED", "NOW", "ROLLOUT", "BY", "SIGNED BY", "DETAILS"}, rows, "no revisions since then")
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
