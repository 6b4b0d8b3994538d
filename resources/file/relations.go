package file

import (
	"path/filepath"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Relations order a file after its parent directories, its source and its accounts. The removal of a
// directory comes after the removal of its entries. A directory also provides its parents.
func (Type) Relations(spec *Spec) resource.Relations {
	if spec.Ensure == model.EnsureAbsent {
		return resource.Relations{
			Provides: resource.Provides(resource.EmptiedNeed(filepath.Dir(spec.Name))), Removes: []string{resource.PathNeed(spec.Name)},
			Needs: []resource.Need{{What: resource.EmptiedNeed(spec.Name), All: true}}, WaitsForDiskOnly: true,
		}
	}
	out := resource.Relations{
		Provides: resource.Provides(resource.PathNeed(spec.Name)), Needs: resource.NeedsAbove(spec.Name),
		WaitsForDiskOnly: spec.Validator == "",
	}
	if spec.Ensure == EnsureDirectory {
		out.Provides = append(out.Provides, resource.ProvidesAbove(spec.Name)...)
	}
	if filepath.IsAbs(spec.Source) {
		out.Needs = append(out.Needs, resource.Need{What: resource.PathNeed(filepath.Clean(spec.Source)), ReadsContent: true})
	}
	out.Needs = append(out.Needs, resource.AccountNeeds(spec.Owner, spec.Group)...)

	return out
}

// Watches returns the path and the source.
func (Type) Watches(_ FileProvider, spec *Spec) []watch.Point {
	return resource.WatchPaths(spec.Name, spec.Source)
}
