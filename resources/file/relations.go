package file

import (
	"path/filepath"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Relations order a file after its parent directories, its source and its
// accounts, and the removal of a directory after that of its entries. A
// directory resource also provides its parents.
func (*Type) Relations(spec *Spec) resource.Relations {
	if spec.Ensure == model.EnsureAbsent {
		return resource.Relations{
			Provides: []string{resource.EmptiedNeed(filepath.Dir(spec.Name))}, Removes: []string{resource.PathNeed(spec.Name)},
			NeedsAll: []string{resource.EmptiedNeed(spec.Name)},
		}
	}
	out := resource.Relations{Provides: []string{resource.PathNeed(spec.Name)}, Needs: resource.NeedsAbove(spec.Name)}
	if spec.Ensure == EnsureDirectory {
		out.Along = slices.Clone(out.Needs)
	}
	if filepath.IsAbs(spec.Source) {
		out.Reads = []string{resource.PathNeed(filepath.Clean(spec.Source))}
		out.Needs = append(out.Needs, out.Reads...)
	}
	out.Needs = append(out.Needs, resource.AccountNeeds(spec.Owner, spec.Group)...)

	return out
}
