package fleetcmd

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// WarnUnknown warns of targets without known nodes.
func WarnUnknown(log *slog.Logger, targets []fleet.Target, nodes []model.Node) {
	for _, t := range targets {
		warnUnknownTarget(log, t, nodes, "")
	}
}

// Unknown returns the targets without known nodes.
func Unknown(targets []fleet.Target, nodes []model.Node) []fleet.Target {
	isKnown := func(t fleet.Target) bool {
		return slices.ContainsFunc(nodes, func(n model.Node) bool { return t.Includes(n.NodeState) })
	}

	return slices.DeleteFunc(slices.Clone(targets), isKnown)
}

// warnUnknownTarget warns of a target unless it has known nodes. undo is a command that undoes the change, or empty; the
// warning omits it in a fleet without nodes.
func warnUnknownTarget(log *slog.Logger, t fleet.Target, nodes []model.Node, undo string) {
	if len(Unknown([]fleet.Target{t}, nodes)) == 0 {
		return
	}
	event := "no known node matches, see muster fleet nodes"
	if near := NearTarget(t, nodes); t.Group != "" {
		event = NoSuchGroup(t, nodes).Error()
	} else if near != "" {
		event = "no known node matches, did you mean " + near + "?"
	}
	attributes := []any{"target", t.String()}
	if undo != "" && len(nodes) > 0 {
		attributes = append(attributes, "undo", undo)
	}
	log.Warn(event, attributes...)
}

// NoSuchGroups joins the errors of NoSuchGroup in one line.
func NoSuchGroups(groups []fleet.Target, nodes []model.Node) string {
	texts := make([]string, len(groups))
	for i, t := range groups {
		texts[i] = NoSuchGroup(t, nodes).Error()
	}

	return strings.Join(texts, ", ")
}

// NoSuchGroup returns an error for a group without known nodes.
func NoSuchGroup(t fleet.Target, nodes []model.Node) error {
	near := NearTarget(t, nodes)
	if near != "" {
		near = ", did you mean " + near + "?"
	}

	return fmt.Errorf("no known node is in group %s%s (see muster fleet nodes)", t.Group, near)
}

// NearTarget suggests a known node or group with a name similar to the target, or returns an empty string.
func NearTarget(t fleet.Target, nodes []model.Node) string {
	var known []string
	for _, n := range nodes {
		if t.Node != "" {
			known = append(known, n.Node)
		} else {
			known = append(known, n.Groups...)
		}
	}

	name := cmp.Or(t.Node, t.Group)
	if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) }); i >= 0 {
		return known[i]
	}

	return document.Nearest(name, known)
}

// WarnStopped warns of target nodes with a stopped agent.
func WarnStopped(log *slog.Logger, targets []fleet.Target, nodes []model.Node) {
	var stopped []string
	for _, n := range nodes {
		if n.Stopped() && slices.ContainsFunc(targets, func(t fleet.Target) bool { return t.Includes(n.NodeState) }) {
			stopped = append(stopped, n.Node)
		}
	}
	if len(stopped) > 0 {
		log.Warn("stopped nodes do not answer, see muster fleet nodes", "nodes", strings.Join(stopped, ","))
	}
}
