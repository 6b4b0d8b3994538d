package service

import (
	"strings"

	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Relations order a service after the files of its unit, the files of the unit that it starts, and
// the package with its name. A masked service provides its mask.
func (Type) Relations(spec *Spec) resource.Relations {
	needs := relations(spec)
	switch bare, suffix := cutSuffix(spec.Name); suffix {
	case ".timer", ".socket", ".path":
		needs = append(needs, files(bare+".service")...)
	}

	out := resource.Relations{Needs: resource.Needs(needs...)}
	if is(spec.Masked, true) {
		out.Provides = resource.Provides(resource.MaskNeed("/etc/systemd/system/" + UnitName(spec.Name)))
	}

	return out
}

// unitFiles returns the needs for the unit file of a service and for its drop-ins.
func unitFiles(spec *Spec) []string {
	var out []string
	for _, word := range relations(spec) {
		if strings.HasPrefix(word, resource.PathNeed("")) {
			out = append(out, word, word+"/")
		}
	}

	return out
}

// relations returns the needs of a missing service: the resources that may provide it.
func relations(spec *Spec) []string {
	bare, suffix := cutSuffix(spec.Name)
	template, _, isInstance := strings.Cut(bare, "@")
	needs := files(spec.Name)
	if isInstance {
		needs = append(needs, files(template+"@"+suffix)...)
	}

	return append(needs, "package:"+template)
}

// files returns the possible paths of the unit file of a service.
func files(service string) []string {
	var needs []string
	unit := UnitName(service)
	for _, dir := range []string{"/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"} {
		needs = append(needs, resource.PathNeed(dir+"/systemd/system/"+unit), resource.PathNeed(dir+"/systemd/system/"+unit+".d"))
	}
	if bare, suffix := cutSuffix(service); suffix == ".service" {
		needs = append(needs, resource.PathNeed("/etc/init.d/"+bare))
	}

	return needs
}

// Watches returns the watches of the service manager.
func (Type) Watches(p ServiceProvider, spec *Spec) []watch.Point {
	if w, ok := p.(Watcher); ok {
		return w.Watches(spec.Name)
	}

	return nil
}
