package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// checkConflicts rejects a push that nodes would reject because an active manifest declares a resource
// differently. It skips resources that only a node can resolve. Nodes may claim groups that they are not in,
// so the error names the nodes and the user can skip the check.
func (c *pushCommand) checkConflicts(ctx context.Context, s *Store, push assign.Push, nodes []model.Node) error {
	if c.despiteConflicts {
		return nil
	}
	var problems model.Problems
	for _, met := range push.InForceBeside(nodes) {
		where := print.Some(met.Nodes, "see muster fleet nodes")
		e, err := s.Get(ctx, met.Key)
		if errors.Is(err, model.ErrNotFound) || errors.Is(err, model.ErrUnusable) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot compare with %s, which is active on %s: %w\nto push without this check, add --despite-conflicts", met.Key, where, err)
		}
		claims := graph.Claims{}
		claims.Add(met.Key, c.declaredBy(ctx, e))
		for _, p := range claims.Conflicts(c.declared) {
			p.Message += " on " + where
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		return &cli.ExitError{Code: cli.ExitFailed, Err: problems, Note: "nothing was pushed, because the active manifests would stay active; --despite-conflicts pushes anyway"}
	}

	return nil
}

// confirmNoop asks before a push with --noop replaces an enforced assignment.
func (c *pushCommand) confirmNoop(ctx context.Context, s *Store, push assign.Push, nodes []model.Node) error {
	if !push.Terms.Noop || c.yes {
		return nil
	}
	var enforced []string
	for _, key := range push.Replaces(nodes) {
		e, err := s.Get(ctx, key)
		if errors.Is(err, model.ErrNotFound) || errors.Is(err, model.ErrUnusable) {
			continue
		}
		if err != nil {
			return err
		}
		if a, _ := document.DecodeAssigned(key, e.Value); !a.Noop {
			enforced = append(enforced, key)
		}
	}
	if len(enforced) == 0 {
		return nil
	}

	return c.Confirm("nothing was pushed", "nodes would stop enforcing "+strings.Join(enforced, ", ")+", and only report what they would change")
}

// declaredBy returns the resources of an assignment that do not depend on a node. It returns nothing for a
// bundle.
func (c *pushCommand) declaredBy(ctx context.Context, e model.Entry) []*resource.Resource {
	a, problems := document.DecodeAssigned(e.Key, e.Value)
	if problems != nil {
		return nil
	}
	doc, err := manifest.Parse(e.Key, []byte(a.Manifest))
	if err != nil {
		return nil
	}
	checked, err := manifest.NewLoader(manifest.Options{Types: c.Types}).Check(ctx, doc, manifest.Inputs{Data: a.Data, Drift: a.Drift})
	if err != nil {
		return nil
	}

	return sameOnAllNodes(checked.Resources)
}

// sameOnAllNodes filters the resources that are the same on each node.
func sameOnAllNodes(all []*resource.Resource) []*resource.Resource {
	return slices.DeleteFunc(all, func(r *resource.Resource) bool { return r.ResolveDeferred != nil || r.Type.NeedsOrigin })
}
