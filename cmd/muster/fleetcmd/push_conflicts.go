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

// checkConflicts rejects a push that nodes would reject, because a manifest that is
// in force there declares a resource differently. Only nodes know everything: what
// depends on one is left to it. A node may also claim groups that it is not in, so
// its name is shown, and the check can be skipped.
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
			return fmt.Errorf("%s is in force on %s, and cannot be compared: %w\npush without this check: --despite-conflicts", met.Key, where, err)
		}
		claims := graph.Claims{}
		claims.Add(met.Key, c.declaredBy(ctx, e))
		for _, p := range claims.Conflicts(c.declared) {
			p.Message += " on " + where
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		return &cli.ExitError{Code: cli.ExitFailed, Err: problems, Note: "nothing was pushed, because the manifests in force stay in force; --despite-conflicts pushes all the same"}
	}

	return nil
}

// confirmNoop asks before nodes stop enforcing what is enforced now.
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

// declaredBy returns what an assignment declares, as far as that is known here:
// nothing of a bundle, or of what only its nodes can evaluate.
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

// sameOnAllNodes returns the resources that are the same on each node.
func sameOnAllNodes(all []*resource.Resource) []*resource.Resource {
	return slices.DeleteFunc(all, func(r *resource.Resource) bool { return r.ResolveDeferred != nil || r.Type.NeedsOrigin })
}
