package engine

import (
	"context"
	"strings"

	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// reloadUnits runs a daemon-reload if the run changed unit files and no service change already
// ran one. It also runs after an interrupt, because later runs find the files up to date.
func (r *run) reloadUnits(ctx context.Context) {
	h := r.opts.Env.Host
	if h == nil {
		return
	}
	if r.opts.Env.Scope.Unchanging() {
		if h.IsReloadPending(r.opts.Parents) {
			r.opts.Env.Log.WarnContext(ctx, "systemd would reload its unit files, because an earlier run was killed before the daemon-reload")
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), atEndTime)
	defer cancel()
	done, err := h.ReloadUnits(ctx, r.opts.RunID, r.opts.Parents)
	if err != nil {
		r.report.AddError(err.Error())
	}
	if done {
		r.opts.Env.Log.InfoContext(ctx, "systemd reloaded its unit files")
	}
}

// wouldReloadUnits reports whether the changes of a plan cause a daemon-reload, because they write
// or remove a unit file.
func (r *run) wouldReloadUnits(n *graph.Node, due resource.Plan) bool {
	reloads := r.opts.Env.Host.WouldReloadUnits
	if due.Paths != nil {
		return reloads(due.Paths...)
	}
	if n.Resource.Type.Relations == nil {
		return false
	}
	relations := n.Resource.Type.Relations(r.observer.Spec(n))
	words := relations.Removes
	for _, p := range relations.Provides {
		if !p.Implicit {
			words = append(words, p.What)
		}
	}

	var paths []string
	for _, word := range words {
		if path, ok := strings.CutPrefix(word, resource.PathNeed("")); ok {
			paths = append(paths, path)
		}
	}

	return reloads(paths...)
}
