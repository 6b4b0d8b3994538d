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
	out.Needs = append(out.Needs, resource.Needs(ToolNeeds(Tool(spec.Name))...)...)

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
