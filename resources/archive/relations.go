package archive

import (
	"path/filepath"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Relations order an archive after its accounts and the parent directories of the archive and its
// target, and before resources that need its files.
func (Type) Relations(spec *Spec) resource.Relations {
	if spec.Ensure == model.EnsureAbsent {
		return resource.Relations{Provides: resource.Provides(resource.EmptiedNeed(filepath.Dir(spec.Name))), Removes: []string{resource.PathNeed(spec.Name)}}
	}
	out := resource.Relations{Needs: resource.NeedsAbove(spec.Name)}
	if !spec.Cleanup {
		out.Provides = resource.Provides(resource.PathNeed(spec.Name))
	}
	out.Needs = append(out.Needs, resource.AccountNeeds(spec.Owner, spec.Group)...)
	if spec.ExtractParent == "" {
		return out
	}
	if spec.Creates != "" {
		out.SkipIfExists = []string{resource.PathNeed(spec.Creates)}
	}
	target := resource.PathNeed(spec.ExtractParent)
	out.Provides = append(out.Provides, resource.Provides(append([]string{target}, out.SkipIfExists...)...)...)
	out.Needs = append(append(out.Needs, resource.Need{What: target}), resource.NeedsAbove(spec.ExtractParent)...)

	return out
}

// Watches returns the archive and the creates path. muster does not record other unpacked files.
func (Type) Watches(_ ArchiveProvider, spec *Spec) []watch.Point {
	return resource.WatchPaths(spec.Name, spec.Creates)
}
