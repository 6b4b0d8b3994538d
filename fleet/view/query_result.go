package view

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/fleet/targets"

	"github.com/musterfleet/muster/model"
)

// QueryResult is a result of a resource as a row.
type QueryResult struct{ targets.Result }

// ResultTable is the table of transactions, and of resources.
func ResultTable() QueryTable {
	return QueryTable{Columns: targets.ResultNames(), Default: []string{"time", "node", "manifest", "resource", "outcome", "cause", "text"}}
}

// ResultOf returns the result in the report of a transaction.
func ResultOf(r model.Report) (targets.Result, error) {
	var t model.Transaction
	if err := json.Unmarshal(r.Data, &t); err != nil {
		return targets.Result{}, fmt.Errorf("transaction %s of node %s: %w", r.ID, r.Node, err)
	}
	out := targets.Result{
		Node: r.Node, Time: r.Time, Manifest: r.Manifest, Revision: r.Revision, Type: t.Type, Name: t.Name, Resource: t.Ref().String(), Provider: t.Provider, Alias: t.Alias,
		Outcome: string(r.Outcome), Cause: string(r.Cause), Error: strings.Join(t.Errors, "\n"), Text: DescribeTransaction(&t), Noop: t.Noop, Duration: t.Duration,
		RunID: r.RunID, CorrelationID: r.CorrelationID, ID: r.ID,
	}
	if d := t.Drift; d != nil {
		out.Drift, out.Drifted, out.Latency = t.Repaired(), d.From, d.Latency
	}

	return out, nil
}

// Value returns a value of the result.
func (r QueryResult) Value(column string) any {
	switch column {
	case "node":
		return r.Node
	case "time":
		return r.Time
	case "manifest":
		return r.Manifest
	case "revision":
		return r.Revision
	case "type":
		return r.Type
	case "name":
		return r.Name
	case "resource":
		return r.Resource
	case "provider":
		return r.Provider
	case "alias":
		return r.Alias
	case "outcome":
		return r.Outcome
	case "cause":
		return r.Cause
	case "error":
		return r.Error
	case "text":
		return r.Text
	default:
		return r.about(column)
	}
}

// about returns a value of the run.
func (r QueryResult) about(column string) any {
	switch column {
	case "noop":
		return r.Noop
	case "drift":
		return r.Drift
	case "drifted":
		return r.Drifted
	case "latency":
		return r.Latency
	case "duration":
		return r.Duration
	case "run_id":
		return r.RunID
	case "correlation_id":
		return r.CorrelationID
	case "id":
		return r.ID
	default:
		return nil
	}
}
