package service

import (
	"strings"

	"github.com/musterfleet/muster/resources/resource"
)

// Relations order a service after what its unit is read from and after the
// package of its name.
func (*Type) Relations(spec *Spec) resource.Relations {
	return resource.Relations{Needs: relations(spec)}
}

// Canonical gives the name of the unit, of which the suffix .service may be left out.
func (*Type) Canonical(spec *Spec) string { return UnitName(spec.Name) }

func relations(spec *Spec) []string {
	unit := UnitName(spec.Name)
	bare := strings.TrimSuffix(spec.Name, ".service")
	var needs []string
	for _, dir := range []string{"/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"} {
		needs = append(needs, resource.PathNeed(dir+"/systemd/system/"+unit), resource.PathNeed(dir+"/systemd/system/"+unit+".d"))
	}

	return append(needs, resource.PathNeed("/etc/init.d/"+bare), "package:"+bare)
}
