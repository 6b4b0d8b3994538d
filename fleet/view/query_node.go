package view

import (
	"strings"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/targets"

	"github.com/musterfleet/muster/model"
)

// QueryNode is a node as a row, with the fields of the JSON API and of target expressions.
type QueryNode struct {
	NodeRow
	Known    model.Node
	Statuses []fleet.RolloutStatus
	// Facts are nil if they are unknown.
	Facts model.Facts
}

// NodeTable is the table of nodes.
func NodeTable() QueryTable {
	return QueryTable{
		Columns: []string{"node", "host", "version", "groups", "labels", "state", "since", "reason", "manifests", "paused", "message", "heard", "started", "outbox", "clock"},
		Default: []string{"node", "state", "version", "heard", "groups", "reason"},
		Nested:  map[string]string{"labels": "labels.rack", "facts": "facts.host.info.platform", "manifest": "manifest.motd.revision", "manifests": "manifests.failed"},
	}
}

// Value returns a value of the node.
func (n QueryNode) Value(column string) any {
	name, path, _ := strings.Cut(column, ".")
	switch name {
	case "node":
		return n.Node
	case "host":
		return n.Host
	case "version":
		return n.Version
	case "groups":
		return n.Groups
	case "labels":
		return labelValue(n.Labels, path)
	case "state":
		return string(n.State)
	case "since":
		return n.Since
	case "reason":
		return n.Reason
	case "manifests":
		return tallyValue(n.Tally, path)
	case "manifest":
		return n.manifest(path)
	case "facts":
		return factValue(n.Facts, path)
	default:
		return n.said(name)
	}
}

// said returns a value that only the state of the node has.
func (n QueryNode) said(name string) any {
	switch name {
	case "paused":
		return n.Known.Paused != nil
	case "message":
		return n.Known.Message
	case "heard":
		return n.Heard
	case "started":
		return n.Known.Started
	case "outbox":
		return n.Outbox
	case "clock":
		return n.Known.Clock.Offset.Std().Seconds()
	default:
		return nil
	}
}

// manifest returns a value of a manifest on the node, as in target expressions: the status if no field
// follows the name.
func (n QueryNode) manifest(path string) any {
	name, property, _ := strings.Cut(path, ".")
	m := targets.ManifestsOf(n.Statuses)(name)
	switch property {
	case "", "status":
		return m.Status
	case "revision":
		return m.Revision
	case "outcome":
		return m.Outcome
	default:
		return nil
	}
}

func labelValue(all map[string]string, name string) any {
	if name == "" {
		return all
	}
	if value, has := all[name]; has {
		return value
	}

	return nil
}

// tallyValue returns the counts of manifests by status, or one of them.
func tallyValue(t fleet.Tally, name string) any {
	counts := map[string]any{
		"targets": t.Targets, "up_to_date": t.UpToDate, "failed": t.Failed, "rejected": t.Rejected, "unreachable": t.Unreachable, "unreadable": t.Unreadable, "pending": t.Pending,
	}
	if name == "" {
		return counts
	}

	return counts[name]
}

// factValue returns the value at a path of facts, nil for none.
func factValue(facts model.Facts, path string) any {
	var at any = map[string]any(facts)
	for name := range strings.SplitSeq(path, ".") {
		within, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = within[name]
	}

	return at
}
