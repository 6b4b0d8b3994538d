package file

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Relations order a file after the directories it stands in, its source and its
// accounts, and the removal of a directory after that of what is in it. A
// directory comes with those above it.
func (*Type) Relations(spec *Spec) resource.Relations {
	if spec.Ensure == model.EnsureAbsent {
		return resource.Relations{Provides: []string{emptied(filepath.Dir(spec.Name))}, Needs: []string{emptied(spec.Name)}}
	}
	out := resource.Relations{Provides: []string{pathNeed(spec.Name)}}
	for parent := filepath.Dir(spec.Name); parent != filepath.Dir(parent); parent = filepath.Dir(parent) {
		out.Needs = append(out.Needs, pathNeed(parent))
	}
	if spec.Ensure == EnsureDirectory {
		out.Along = slices.Clone(out.Needs)
	}
	if filepath.IsAbs(spec.Source) {
		out.Needs = append(out.Needs, pathNeed(filepath.Clean(spec.Source)))
	}
	for _, account := range []string{spec.Owner, spec.Group} {
		if strings.Trim(account, "0123456789") != "" {
			out.Needs = append(out.Needs, "account:"+account)
		}
	}

	return out
}

func pathNeed(path string) string { return "path:" + path }

// emptied is what the removal of a directory needs from those of its entries.
func emptied(directory string) string { return "emptied:" + directory }
