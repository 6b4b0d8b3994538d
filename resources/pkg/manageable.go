package pkg

import (
	"fmt"
	"os"
	"slices"

	"github.com/musterfleet/muster/model"
)

// The priorities of a package manager: on its own platform, on an unknown platform, and on the platform
// of another package manager, where a resource must name it.
const (
	priorityOwn     = 1
	priorityUnknown = 50
	priorityForeign = 99
)

// families are the values of the fact host.info.platformFamily with a known package manager.
func families() []string { return []string{"debian", "fedora", "rhel"} }

// Manageable reports whether a package manager is installed, and its priority: best on its own
// families, worst on the families of other package managers. The error names the missing program.
func Manageable(facts model.Facts, programs []string, own ...string) (bool, int, error) {
	for _, program := range programs {
		if _, err := os.Stat(program); err != nil {
			return false, 0, fmt.Errorf("there is no %s", program)
		}
	}
	host, _ := facts["host"].(map[string]any)
	info, _ := host["info"].(map[string]any)
	family, _ := info["platformFamily"].(string)
	switch {
	case slices.Contains(own, family):
		return true, priorityOwn, nil
	case slices.Contains(families(), family):
		return true, priorityForeign, nil
	default:
		return true, priorityUnknown, nil
	}
}
