package archive

import (
	"path/filepath"

	"github.com/musterfleet/muster/model"
	hostarchive "github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/resource"
)

// Relations order an archive after its parent directories and those of its
// target, its accounts and its tool, and before resources that need what it
// provides.
func (*Type) Relations(spec *Spec) resource.Relations {
	if spec.Ensure == model.EnsureAbsent {
		return resource.Relations{Provides: []string{resource.EmptiedNeed(filepath.Dir(spec.Name))}, Removes: []string{resource.PathNeed(spec.Name)}}
	}
	out := resource.Relations{Needs: resource.NeedsAbove(spec.Name)}
	if !spec.Cleanup {
		out.Provides = append(out.Provides, resource.PathNeed(spec.Name))
	}
	out.Needs = append(out.Needs, resource.AccountNeeds(spec.Owner, spec.Group)...)
	if spec.ExtractParent == "" {
		return out
	}
	out.Provides = append(out.Provides, resource.PathNeed(spec.ExtractParent))
	if spec.Creates != "" {
		out.Unless = []string{resource.PathNeed(spec.Creates)}
		out.Provides = append(out.Provides, out.Unless...)
	}
	out.Needs = append(append(out.Needs, resource.PathNeed(spec.ExtractParent)), resource.NeedsAbove(spec.ExtractParent)...)
	out.Needs = append(out.Needs, ToolNeeds(Tool(spec.Name))...)

	return out
}

// Tool returns the program that unpacks an archive, empty for none.
func Tool(name string) string {
	switch format, _ := Format(name); format {
	case hostarchive.Zip:
		return "unzip"
	case hostarchive.Tar, hostarchive.TarGz:
		return "tar"
	default:
		return ""
	}
}

// ToolNeeds returns the needs of a tool, any of which provides it.
func ToolNeeds(tool string) []string {
	return []string{"package:" + tool, resource.PathNeed("/usr/bin/" + tool)}
}
