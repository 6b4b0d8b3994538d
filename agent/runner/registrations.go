package runner

import (
	"github.com/musterfleet/muster/agent/desired"

	"github.com/musterfleet/muster/model"
)

// recallRegistrations registers the services that an earlier process registered if no run does so soon: the
// node is paused, or drift is not repaired. Resources with health checks wait for them if passes are
// enabled.
func recallRegistrations(to *Registrar, key string, v *desired.Version, paused, checked bool) {
	for _, res := range v.Resolution.Resources {
		meta, from := res.Meta(), Source{Manifest: key, Resource: res.Ref()}
		unchanged := v.Noop || meta.Noop || res.Scope.Noop || res.Scope.HealthCheckOnly || res.Excluded != ""
		if unchanged || !paused && meta.Drift != model.DriftReport && meta.Drift != model.DriftIgnore {
			continue
		}
		to.Set(from, meta.RegisterWhenStable)
		if len(meta.HealthChecks) > 0 && checked {
			to.Deregister(from)
		}
	}
}

// retainRegistrations ends the registrations of inactive resources.
func retainRegistrations(in *Registrar, view *desired.View) {
	active, open := map[Source]bool{}, map[string]bool{}
	for _, key := range view.Keys() {
		refs, more := view.Active(key).Registers()
		open[key] = more
		for _, ref := range refs {
			active[Source{Manifest: key, Resource: ref}] = true
		}
	}
	in.Retain(func(s Source) bool { return active[s] || open[s.Manifest] })
}
