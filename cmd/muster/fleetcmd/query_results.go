package fleetcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// maxResults is the maximum number of matching results in memory.
const maxResults = 200_000

// queryResults collects matching results.
type queryResults struct {
	run *targets.RowEvaluator[targets.Result]
	// nodes limits the nodes whose results count; nil means all.
	nodes   map[string]bool
	matches []targets.Result
	// current is set if only the newest result of each resource counts.
	current   *view.CurrentResults
	known     Repeats
	shares    view.Shares
	invalid   int
	undecided map[string]bool
	full      bool
	// unknown collects the names that occur in reports.
	unknown *targets.Finder
}

// results queries the results of resources.
func (c *queryCommand) results(ctx context.Context, store *Store, e targets.Query[targets.Result], on *targets.Expression) (view.QueryAnswer, error) {
	r := &queryResults{run: e.Evaluator(ctx.Done()), undecided: map[string]bool{}, unknown: targets.NewFinder(e.Mentions())}
	if c.from == fromResources {
		r.current = &view.CurrentResults{}
	}
	var incomplete []string
	if on != nil {
		found, err := find(ctx, store, on, nil)
		if err != nil {
			return view.QueryAnswer{}, err
		}
		if found.undecided != nil {
			incomplete = append(incomplete, found.undecided.Error())
		}
		r.nodes = found.names()
	}
	bounds, err := kvstore.NewReports(store.KV).Bounds(ctx)
	if err == nil {
		err = r.read(ctx, store, c.sinceAt)
	}
	if err == nil && r.current != nil {
		err = r.readCurrent(ctx, store, c.sinceAt)
	}
	if err != nil {
		return view.QueryAnswer{}, err
	}
	warnings, err := r.warnings(ctx, store, c.Types)
	if err != nil {
		return view.QueryAnswer{}, err
	}
	out := answerOf(c, r.matches)
	out.Warnings = append(e.Warnings(), warnings...)
	out.Incomplete = append(append(out.Incomplete, incomplete...), r.incomplete(bounds, c.sinceAt)...)

	return out, nil
}

// warnings returns warnings about names in the expression that do not exist in reports, the fleet or muster.
func (r *queryResults) warnings(ctx context.Context, store *Store, types resource.Types) ([]string, error) {
	r.unknown.AddKey(model.KindEnsure) // the manifest of ensure requests
	for _, t := range types {
		r.unknown.Add(targets.SpaceType, t.Name)
		for _, provider := range t.Providers {
			r.unknown.Add(targets.SpaceProvider, provider)
		}
	}
	if !slices.ContainsFunc([]targets.Space{targets.SpaceType, targets.SpaceProvider, targets.SpaceNode, targets.SpaceKey}, r.unknown.Needs) {
		return nil, nil
	}
	all, entries, err := store.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		r.unknown.AddKey(e.Key)
	}

	return targets.UnknownNames(r.unknown, each(all), nil), nil
}

// only returns the node if all results are from one node, otherwise an empty string.
func (r *queryResults) only() string {
	if len(r.nodes) != 1 {
		return ""
	}

	return slices.Collect(maps.Keys(r.nodes))[0]
}

// each calls take for each report of a kind from the selected nodes.
func (r *queryResults) each(ctx context.Context, store *Store, kind string, since time.Time, take func(model.Report) error) error {
	for m, err := range kvstore.NewReports(store.KV).Messages(ctx, model.ReportRange{Node: r.only(), Kind: kind, Since: since}) {
		if err != nil {
			return err
		}
		if m.Invalid != nil {
			r.invalid++
		}
		r.shares.Add(m)
		for _, report := range m.Reports {
			if r.nodes != nil && !r.nodes[report.Node] || r.known.SeenBefore(report) {
				continue
			}
			r.unknown.Add(targets.SpaceNode, report.Node)
			r.unknown.AddKey(report.Manifest)
			if err := take(report); err != nil {
				return err
			}
		}
	}

	return nil
}

// read reads the transaction reports and adds the results.
func (r *queryResults) read(ctx context.Context, store *Store, since time.Time) error {
	return r.each(ctx, store, model.KindTransaction, since, func(report model.Report) error {
		result, err := view.ResultOf(report)
		r.unknown.Add(targets.SpaceType, result.Type)
		r.unknown.Add(targets.SpaceProvider, result.Provider)
		switch {
		case err != nil:
			r.invalid++
			return nil
		case r.current != nil:
			r.current.AddResult(result)
			return nil
		default:
			return r.take(result)
		}
	})
}

// take adds a matching result. It returns an error only if the context ended.
func (r *queryResults) take(result targets.Result) error {
	matches, err := r.run.Match(result)
	switch {
	case errors.Is(err, targets.ErrEnded):
		return err
	case err != nil:
		r.undecided[result.Node] = true
	case matches && len(r.matches) >= maxResults:
		r.full = true
	case matches:
		r.matches = append(r.matches, result)
	}

	return nil
}

// readCurrent reads the run reports, and adds the results that are still current.
func (r *queryResults) readCurrent(ctx context.Context, store *Store, since time.Time) error {
	err := r.each(ctx, store, model.KindRun, since, func(report model.Report) error {
		var run model.Run
		if json.Unmarshal(report.Data, &run) != nil {
			r.invalid++
			return nil
		}
		run.Manifest = report.Manifest
		r.current.AddRun(report.Node, run)
		return nil
	})
	if err != nil {
		return err
	}
	all, err := store.Nodes(ctx)
	if err != nil {
		return err
	}
	runs := map[string]model.Node{}
	for _, n := range all {
		runs[n.Node] = n
	}
	for _, result := range r.current.Rows() {
		if n, known := runs[result.Node]; known && n.Unreadable == "" {
			if _, is := n.Manifests[result.Manifest]; !is {
				continue // the manifest is no longer assigned
			}
		}
		if err := r.take(result); err != nil {
			return err
		}
	}

	return nil
}

// incomplete returns the reasons why results may be missing.
func (r *queryResults) incomplete(b model.ReportBounds, since time.Time) []string {
	var out []string
	if b.Dropped && b.Oldest.After(since) {
		out = append(out, "reports from before "+print.Time(b.Oldest)+" are no longer stored")
	}
	out = append(out, missingReports(&r.shares, b)...)
	if r.invalid > 0 {
		out = append(out, print.Count(r.invalid, "message")+" with reports that cannot be read")
	}
	if len(r.undecided) > 0 {
		out = append(out, "cannot tell whether results of "+print.Count(len(r.undecided), "node")+" match: "+someOf(slices.Collect(maps.Keys(r.undecided))))
	}
	if r.current != nil {
		if full := r.current.Full(); len(full) > 0 {
			out = append(out, fmt.Sprintf("only %d resources, and not all manifests, are shown of %s: %s", view.MaxResources, print.Count(len(full), "node"), someOf(full)))
		}
	}
	if r.full {
		out = append(out, fmt.Sprintf("more than %d match: the oldest of them are shown; select fewer", maxResults))
	}

	return out
}
