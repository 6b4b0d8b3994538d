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
	if h == nil || r.opts.Env.Scope.Unchanging() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), atEndTime)
	defer cancel()
	done, err := h.ReloadUnits(ctx)
	if err != nil {
		r.report.AddError(err.Error())
	}
	if done {
		r.opts.Env.Log.InfoContext(ctx, "systemd reloaded its unit files")
	}
}

// wouldReloadUnits reports whether a change of n causes a daemon-reload, because n provides or
// removes a unit file.
func (r *run) wouldReloadUnits(n *graph.Node) bool {
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
	for _, word := range words {
		if path, ok := strings.CutPrefix(word, resource.PathNeed("")); ok && r.opts.Env.Host.WouldReloadUnits(path) {
			return true
		}
	}

	return false
}
