package view

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

// MaxResults is the maximum number of rows of an answer.
const MaxResults = 200_000

// ResultQuery selects results of resources.
type ResultQuery struct {
	Run *targets.RowEvaluator[targets.Result]
	// Nodes limits the nodes whose results count; nil means all.
	Nodes map[string]bool
	// Since is the time of the oldest results.
	Since time.Time
	// OnlyCurrent selects only the newest result of each resource, of manifests that are still assigned.
	OnlyCurrent bool
	// Unknown collects the names that occur in reports.
	Unknown *targets.Finder
}

// ReportSource has the reports and the nodes of a fleet.
type ReportSource interface {
	Messages(ctx context.Context, in model.ReportRange) iter.Seq2[model.StoredReports, error]
	Nodes(ctx context.Context) ([]model.Node, error)
}

// ResultMatches are the results that match a query.
type ResultMatches struct {
	Rows []targets.Result
	// Undecided are the nodes with a result for which the expression fails.
	Undecided map[string]bool
	// Invalid is the number of messages with reports that cannot be read.
	Invalid int
	// Full reports whether more than MaxResults match. Cut are the nodes with more than MaxResources resources.
	Full   bool
	Cut    []string
	Shares Shares

	query   ResultQuery
	current CurrentResults
	known   *Repeats
}

// MatchResults reads the results that match a query. The error is an error of the source, or wraps targets.ErrEnded.
func MatchResults(ctx context.Context, q ResultQuery, from ReportSource) (*ResultMatches, error) {
	m := &ResultMatches{Undecided: map[string]bool{}, query: q, known: NewRepeats()}
	err := m.each(ctx, from, model.KindTransaction, m.addTransaction)
	if err == nil && q.OnlyCurrent {
		err = m.addCurrent(ctx, from)
	}
	m.Cut = m.current.Full()

	return m, err
}

// each calls take for each report of a kind from the selected nodes.
func (m *ResultMatches) each(ctx context.Context, from ReportSource, kind string, take func(model.Report) error) error {
	in := model.ReportRange{Kind: kind, Since: m.query.Since}
	if len(m.query.Nodes) == 1 {
		for in.Node = range m.query.Nodes {
		}
	}
	for stored, err := range from.Messages(ctx, in) {
		if err != nil {
			return err
		}
		if stored.Invalid != nil {
			m.Invalid++
		}
		m.Shares.Add(stored)
		for _, report := range stored.Reports {
			if m.query.Nodes != nil && !m.query.Nodes[report.Node] || m.known.SeenBefore(report.Node, report.ID) {
				continue
			}
			m.query.Unknown.Add(targets.SpaceNode, report.Node)
			m.query.Unknown.AddKey(report.Manifest)
			if err := take(report); err != nil {
				return err
			}
		}
	}

	return nil
}

func (m *ResultMatches) addTransaction(report model.Report) error {
	result, err := ResultOf(report)
	m.query.Unknown.Add(targets.SpaceType, result.Type)
	m.query.Unknown.Add(targets.SpaceProvider, result.Provider)
	switch {
	case err != nil:
		m.Invalid++
		return nil
	case m.query.OnlyCurrent:
		m.current.AddResult(result)
		return nil
	default:
		return m.take(result)
	}
}

// take adds a matching result. It returns an error only if the context ended.
func (m *ResultMatches) take(result targets.Result) error {
	matches, err := m.query.Run.Match(result)
	switch {
	case errors.Is(err, targets.ErrEnded):
		return err
	case err != nil:
		m.Undecided[result.Node] = true
	case matches && len(m.Rows) >= MaxResults:
		m.Full = true
	case matches:
		m.Rows = append(m.Rows, result)
	}

	return nil
}

// addCurrent reads the reports of runs, and adds the results that are still current.
func (m *ResultMatches) addCurrent(ctx context.Context, from ReportSource) error {
	err := m.each(ctx, from, model.KindRun, func(report model.Report) error {
		var run model.Run
		if json.Unmarshal(report.Data, &run) != nil {
			m.Invalid++
			return nil
		}
		run.Manifest = report.Manifest
		m.current.AddRun(report.Node, run)
		return nil
	})
	if err != nil {
		return err
	}
	all, err := from.Nodes(ctx)
	if err != nil {
		return err
	}
	nodes := map[string]model.Node{}
	for _, n := range all {
		nodes[n.Node] = n
	}
	for _, result := range m.current.Rows() {
		if n, known := nodes[result.Node]; known && n.Unreadable == "" {
			if _, is := n.Manifests[result.Manifest]; !is {
				continue // the manifest is no longer assigned
			}
		}
		if err := m.take(result); err != nil {
			return err
		}
	}

	return nil
}
